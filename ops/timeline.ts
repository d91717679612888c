import { shortKey } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";
import type { EventTimeline, Step } from "@kenri/shared/operators/timeline.ts";
import { type Call, type Command, type Result, text, UsageError, type Values } from "./command.ts";
import type { Answer, ServiceName } from "./routes.ts";
import { list, table, time } from "./text.ts";

export const timeline: Command = {
  usage: "timeline EVENT_ID | --user USER | --key IDEMPOTENCY_KEY [--caller NAME]",
  words: 1,
  summary: "Show where an event is: each step in both services, with times and errors",
  options: { user: { type: "string" }, key: { type: "string" }, caller: { type: "string" } },
  help: `
  --user USER     the latest events of a user, one line each
  --key KEY       the event of a request, and the stored answer (kept for 24 hours)
  --caller NAME   whose key it is, if callers need credentials: each caller has keys of its own

One event is shown step by step. Most events go CHANGED → PUBLISHED → RECEIVED → SENT. Other steps are
RETRIED, TAKEN_OVER (the lease of its worker expired), LOST (by the stream), MENDED (republished by
the reconciliation), and what operators did: SENT_BACK, REPLAYED. The last step is SENT, GAVE_UP, or
CAPTURED (JetStream no longer delivers it). The outbox keeps an event for a day after it was
published; the notification service keeps it for 30 days.
Exit code 1 if no event is found.`,
  async run({ api, positionals, values }) {
    const [eventId] = positionals;
    const [user, key] = [text(values["user"]), storedKey(values)];
    if ([eventId, user, key].filter((given) => given !== undefined).length !== 1) {
      throw new UsageError("exactly one of EVENT_ID, --user, --key is required");
    }
    if (user !== undefined) return await eventsOfUser(api, user);
    const own = await api.ask(
      "/debug/entitlement/timeline",
      key === undefined ? { event_id: eventId ?? "" } : { idempotency_key: key },
    );
    const id = own.events[0]?.event_id ?? eventId;
    const other = id === undefined ? [] : await find(api, "notification", [id]);
    const [event] = joined(own.events, other);
    return {
      problem: event === undefined,
      json: { ...(own.key ? { key: own.key } : {}), events: event ? [event] : [] },
      text: [
        ...(own.key ? [answerLine(own.key), ""] : []),
        event ? stepsOf(event) : "No such event is known.",
      ].join("\n"),
    };
  },
};

function storedKey({ key, caller }: Values): string | undefined {
  if (text(caller) === undefined) return text(key);
  if (text(key) === undefined) throw new UsageError("--caller is only for --key");
  return `${text(caller)} ${text(key)}`;
}

/** What each service knows of one event; one of them may know nothing. */
interface Event {
  event_id: string;
  entitlement: EventTimeline | undefined;
  notification: EventTimeline | undefined;
}

// The entitlement service also knows events that wait to be published, the notification service
// also older ones. So each is asked for the events that only the other one returned.
async function eventsOfUser(api: Call["api"], user_id: string): Promise<Result> {
  const [{ events: own }, { events: received }] = await Promise.all([
    api.ask("/debug/entitlement/timeline", { user_id }),
    api.ask("/debug/notification/timeline", { user_id }),
  ]);
  const [older, newer] = await Promise.all([
    find(api, "entitlement", idsWithout(received, own)),
    find(api, "notification", idsWithout(own, received)),
  ]);
  const events = joined([...own, ...older], [...received, ...newer])
    .sort((a, b) => firstAt(b).localeCompare(firstAt(a)));
  return {
    problem: events.length === 0,
    json: { events },
    text: events.length === 0 ? "No event of this user is known." : eventTable(events),
  };
}

function idsWithout(events: EventTimeline[], others: EventTimeline[]): string[] {
  const known = new Set(others.map(({ event_id }) => event_id));
  return events.map(({ event_id }) => event_id).filter((id) => !known.has(id));
}

async function find(
  api: Call["api"],
  service: ServiceName,
  ids: string[],
): Promise<EventTimeline[]> {
  if (ids.length === 0) return [];
  return (await api.ask(`/debug/${service}/timeline`, { event_id: ids.join() })).events;
}

function joined(changed: EventTimeline[], received: EventTimeline[]): Event[] {
  const entitlement = new Map(changed.map((one) => [one.event_id, one]));
  const notification = new Map(received.map((one) => [one.event_id, one]));
  return [...new Set([...entitlement.keys(), ...notification.keys()])].map((event_id) => ({
    event_id,
    entitlement: entitlement.get(event_id),
    notification: notification.get(event_id),
  }));
}

function eventTable(events: Event[]): string {
  const known = ({ entitlement, notification }: Event) => entitlement ?? notification;
  return table(events, {
    "CHANGED": (event) => time(firstAt(event)),
    "EVENT_ID": ({ event_id }) => event_id,
    "ITEM": (event) => known(event)?.stock_keeping_unit,
    "VERSION": (event) => known(event)?.version,
    "TYPE": (event) => known(event)?.type,
    "OUTBOX": ({ entitlement }) => entitlement?.status ?? "unknown",
    "NOTIFICATION": ({ notification }) => notification?.status ?? "not received",
  });
}

function firstAt({ entitlement, notification }: Event): string {
  return entitlement?.steps[0]?.at ?? notification?.steps[0]?.at ?? "";
}

function answerLine(
  { idempotency_key, at, status }: NonNullable<Answer<"/debug/entitlement/timeline">["key"]>,
): string {
  return `Key ${printable(idempotency_key)} was answered with ${status} at ${time(at)}.`;
}

function stepsOf({ event_id, entitlement, notification }: Event): string {
  const known = entitlement ?? notification;
  const steps = merged(
    (entitlement?.steps ?? []).map((step) => ({ ...step, service: "entitlement" })),
    (notification?.steps ?? []).map((step) => ({ ...step, service: "notification" })),
  );
  return [
    list({
      event: event_id,
      user: known?.user_id ?? "unknown",
      item: known?.stock_keeping_unit ?? "unknown",
      type: known?.type ?? "unknown",
      version: known?.version ?? "unknown",
      trace: known?.trace_id ?? "-",
      key: shortKey(entitlement?.idempotency_key ?? "-"),
      caller: entitlement?.caller || undefined,
      outbox: entitlement?.status ?? "unknown",
      notification: notification?.status ?? "not received",
    }),
    "",
    table(steps, {
      "TIME": ({ at }) => time(at),
      "SERVICE": ({ service }) => service,
      "STEP": ({ step }) => step,
      "": detailOf,
    }),
  ].join("\n");
}

// PUBLISHED has the time at which the acknowledgement reached the relay. The message may have
// reached its receiver a little earlier, but PUBLISHED is shown first.
const acknowledgedLaterMs = 5_000;

function merged<One extends Step>(own: One[], others: One[]): One[] {
  const comesFirst = (one: One, other: One) =>
    one.at <= other.at ||
    (one.step === "PUBLISHED" && Date.parse(one.at) - Date.parse(other.at) < acknowledgedLaterMs);
  const steps: One[] = [];
  const [left, right] = [[...own], [...others]];
  while (left[0] && right[0]) {
    const next = comesFirst(left[0], right[0]) ? left.shift() : right.shift();
    if (next) steps.push(next);
  }
  return [...steps, ...left, ...right];
}

function detailOf({ error, stream_seq, worker, begun_at, who, reason }: Step): string {
  return [
    error,
    stream_seq ? `stream sequence ${stream_seq}` : undefined,
    who ? `by ${who}: ${reason}` : undefined,
    worker ? `(worker ${worker}${begun_at ? `, since ${time(begun_at)}` : ""})` : undefined,
  ].filter((part) => part).join(" ");
}
