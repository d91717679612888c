import type { Step } from "@kenri/shared/operators/timeline.ts";
import { time } from "@kenri/shared/ops/text.ts";

// The steps of one event in several services, as one list.

// PUBLISHED has the time at which the acknowledgement reached the relay. The message may have
// reached its receiver a little earlier, but PUBLISHED is shown first.
const acknowledgedLaterMs = 5_000;

/** Merges the steps by their time. The steps of a service stay in their order. */
export function merged<One extends Step>(services: One[][]): One[] {
  return services.reduce((steps, others) => mergedWith(steps, others), []);
}

function mergedWith<One extends Step>(own: One[], others: One[]): One[] {
  const steps: One[] = [];
  const [left, right] = [[...own], [...others]];
  while (left[0] && right[0]) {
    const next = comesFirst(left[0], right[0]) ? left.shift() : right.shift();
    if (next) steps.push(next);
  }
  return [...steps, ...left, ...right];
}

function comesFirst(one: Step, other: Step): boolean {
  const leadsTo = (published: Step, received: Step) =>
    published.step === "PUBLISHED" && received.step === "RECEIVED" &&
    Date.parse(published.at) - Date.parse(received.at) < acknowledgedLaterMs;
  return leadsTo(one, other) || (one.at <= other.at && !leadsTo(other, one));
}

/** What else is known of a step, in one line. */
export function detailOf(step: Step): string {
  const { error, stream_seq, worker, begun_at, who, reason, order_id, to } = step;
  return [
    to ? `to ${to}:` : undefined,
    error,
    stream_seq ? `stream sequence ${stream_seq}` : undefined,
    who ? `by ${who}: ${reason}` : undefined,
    order_id ? `order ${order_id}` : undefined,
    worker ? `(worker ${worker}${begun_at ? `, since ${time(begun_at)}` : ""})` : undefined,
  ].filter((part) => part).join(" ");
}
