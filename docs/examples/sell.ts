// A shop that sells a book and takes it back:
//
//   deno run --allow-net docs/examples/sell.ts http://127.0.0.1:8080
import process from "node:process";
import { type Change, Conflict, kenriClient, Unavailable } from "@kenri/client";

const [url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const kenri = kenriClient(url, { deadlineMs: 10_000 });

// One key for each intended change, made once and stored with the order before anything is sent. A
// repeat uses the same key, whether it comes from this process or the next one.
const order = crypto.randomUUID();
const keyOfSale = `${order}-sale`;
const keyOfRefund = `${order}-refund`;
const user = `user-${order}`;
const fields = { user_id: user, stock_keeping_unit: "book", purchase_id: order };

async function sell(): Promise<Change | undefined> {
  try {
    return await kenri.grant(keyOfSale, { ...fields, reason: "purchase" });
  } catch (error) {
    // The user has the book from another order.
    if (error instanceof Conflict && error.code === "ENTITLEMENT_STATE_CONFLICT") return undefined;
    // Whether the change was made is not known yet: the order stays open, and is sent again later.
    if (error instanceof Unavailable) console.error(`order ${order} stays open: ${error.message}`);
    throw error;
  }
}

function say(what: string, change: Change | undefined): void {
  if (!change) return console.log(`${what}: the user has it already`);
  const { status, version } = change.entitlement;
  console.log(`${what}: ${status}, version ${version}${change.replayed ? ", replayed" : ""}`);
}

say("sold", await sell());
say("sold again, as after a crash", await sell());
say("taken back", await kenri.revoke(keyOfRefund, { ...fields, reason: "refund" }));
const { entitlements } = await kenri.list(user);
for (const { stock_keeping_unit, status } of entitlements) {
  console.log(`listed: ${stock_keeping_unit} is ${status}`);
}
