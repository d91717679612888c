// A shop that gives points two seconds after a purchase, and lets the user spend them:
//
//   deno run --allow-net docs/examples/points.ts http://127.0.0.1:8080
import process from "node:process";
import { Conflict, kenriClient, type PointsReservation } from "@kenri/client";

const [url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const kenri = kenriClient(url, { deadlineMs: 10_000 });

// One key for each intended change, stored with the order before anything is sent. The time is part
// of the request, so it is stored, too: a repeat with another time would be another request.
const order = crypto.randomUUID();
const keys = { bonus: `${order}-bonus`, gift: `${order}-gift`, payment: `${order}-payment` };
const user = `user-${order}`;
const inTwoSeconds = new Date(Date.now() + 2_000).toISOString();
const nextYear = new Date(Date.now() + 365 * 86_400_000).toISOString();
const bonus = { user_id: user, point_amount: 100, execute_at: inTwoSeconds, source_id: order };

const { reservation } = await kenri.reservePoints(keys.bonus, bonus);
console.log(`reserved: ${reservation.point_amount} points, ${reservation.status}`);
const repeated = await kenri.reservePoints(keys.bonus, bonus);
console.log(
  `reserved again, as after a crash: ${repeated.replayed ? "replayed" : "reserved twice"}`,
);

// This program asks. A service that runs all the time receives the event: see docs/events.md.
async function ended(id: string): Promise<PointsReservation> {
  for (;;) {
    const found = await kenri.findReservation(id);
    if (found.status !== "PENDING" && found.status !== "PROCESSING") return found;
    await new Promise((over) => setTimeout(over, 100));
  }
}

const { status, execute_at, done_at = "" } = await ended(reservation.reservation_id);
console.log(`two seconds later: ${status}, ${done_at >= execute_at ? "not early" : "early"}`);

async function spend(key: string, amount: number): Promise<string> {
  const fields = { user_id: user, point_amount: amount, reason: "payment", source_id: order };
  try {
    const { balance } = await kenri.spendPoints(key, fields);
    return `paid, ${balance} left`;
  } catch (error) {
    // The refusal is stored: a repeat with this key is refused, too, however many points there are.
    if (error instanceof Conflict && error.code === "INSUFFICIENT_POINTS") return error.message;
    throw error;
  }
}

console.log(`80 points: ${await spend(keys.payment, 80)}`);
console.log(`80 more: ${await spend(`${keys.payment}-2`, 80)}`);

const gift = { user_id: user, point_amount: 500, execute_at: nextYear };
const { reservation: later } = await kenri.reservePoints(keys.gift, gift);
const cancelled = await kenri.cancelReservation(later.reservation_id);
console.log(`a gift for next year: ${cancelled.status}`);

const { transactions } = await kenri.listTransactions(user);
for (const { kind, point_amount, balance_after } of transactions) {
  console.log(`listed: ${kind} ${point_amount}, balance ${balance_after}`);
}
