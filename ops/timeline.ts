import { shortKey } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";
import { type Call, type Command, text, UsageError } from "./command.ts";
import type { Service } from "./service.ts";
import { list, table, time } from "./text.ts";

interface Step {
  at: string;
  step: string;
  begun_at?: string;
  worker?: string;
  error?: string;
  stream_seq?: number;
  who?: string;
  reason?: string;
}

interface Half {
  event_id: string;
  user_id: string | null;
  stock_keeping_unit: string | null;
  version: number | null;
  type: string | null;
  status: string;
  trace_id: string | null;
  idempotency_key?: string | null;
  caller?: string | null;
  steps: Step[];
}

/** Both halves of one event; either may be all there is. */
interface Event {
  event_id: string;
  entitlement: Half | undefined;
  notification: Half | undefined;
}

export const timeline: Command = {
  usage: "timeline EVENT_ID | --user USER | --key IDEMPOTENCY_KEY [--caller NAME]",
  words: 1,
  summary: "where is my event: each step over both services, with times and errors",
  options: { user: { type: "string" }, key: { type: "string" }, caller: { type: "string" } },
  help: `
  --user USER   the latest events of a user, one line each
  --key KEY     the event of a request, as long as its answer is kept (24 h), and that answer
  --caller NAME whose key it is, where callers have credentials: keys are a caller's own

One event is shown step by step. CHANGED → PUBLISHED → RECEIVED → SENT is the way of most.
In between stand RETRIED, TAKEN_OVER (its worker was gone), LOST (by the stream), and what
people did: SENT_BACK, REPLAYED, MENDED. It ends with SENT, GAVE_UP, or CAPTURED (JetStream
gave it up). The outbox forgets an event a day after it was published, the rest 30 days after.
Exit code 1 when nothing is found.`,
  async run({ entitlement, notification, positionals, values }) {
    const [eventId] = positionals;
    const [user, key] = [text(values["user"]), storedKey(values)];
    if ([eventId, user, key].filter((given) => given !== undefined).length !== 1) {
      throw new UsageError("exactly one of EVENT_ID, --user, --key is required");
    }
    if (user !== undefined) return ofUser(entitlement, notification, user);
    const own = key === undefined
      ? await entitlement.look("timeline", { event_id: eventId })
      : await entitlement.look("timeline", { idempotency_key: key });
    const id = own.events[0]?.event_id ?? eventId;
    const other = id ? (await notification.look("timeline", { event_id: id })).events : [];
    const event: Event = { event_id: id, entitlement: own.events[0], notification: other[0] };
    const isThere = event.entitlement !== undefined || event.notification !== undefined;
    const answer = own.key ? [answerLine(own.key), ""] : [];
    return {
      problem: !isThere,
      json: { ...(own.key ? { key: own.key } : {}), events: isThere ? [event] : [] },
      text: [...answer, isThere ? oneEvent(event) : "No event is known by that."].join("\n"),
    };
  },
};

function storedKey({ key, caller }: Call["values"]): string | undefined {
  if (text(caller) === undefined) return text(key);
  if (text(key) === undefined) throw new UsageError("--caller is for --key");
  return `${text(caller)} ${text(key)}`;
}

// Each half knows events that the other does not: the one what waits, the other the older ones.
async function ofUser(entitlement: Service, notification: Service, user: string) {
  const [own, received] = await Promise.all([
    entitlement.look("timeline", { user_id: user }),
    notification.look("timeline", { user_id: user }),
  ]) as { events: Half[] }[];
  const ids = (halves: Half[] = []) => halves.map(({ event_id }) => event_id);
  const older = ids(received?.events).filter((id) => !ids(own?.events).includes(id));
  const newer = ids(own?.events).filter((id) => !ids(received?.events).includes(id));
  const [more, others] = await Promise.all([
    older.length > 0 ? entitlement.look("timeline", { event_id: older.join() }) : { events: [] },
    newer.length > 0 ? notification.look("timeline", { event_id: newer.join() }) : { events: [] },
  ]);
  const halves = (all: Half[]) => new Map(all.map((half) => [half.event_id, half]));
  const ofEntitlement = halves([...own?.events ?? [], ...more.events]);
  const ofNotification = halves([...received?.events ?? [], ...others.events]);
  const events = [...new Set([...ofEntitlement.keys(), ...ofNotification.keys()])]
    .map((event_id): Event => ({
      event_id,
      entitlement: ofEntitlement.get(event_id),
      notification: ofNotification.get(event_id),
    }))
    .sort((a, b) => firstAt(b).localeCompare(firstAt(a)));
  return {
    problem: events.length === 0,
    json: { events },
    text: events.length === 0 ? "No event is known of that user." : table(
      ["CHANGED", "EVENT_ID", "ITEM", "VERSION", "TYPE", "OUTBOX", "NOTIFICATION"],
      events.map((event) => {
        const half = event.entitlement ?? event.notification;
        return [
          time(firstAt(event)),
          event.event_id,
          half?.stock_keeping_unit,
          half?.version,
          half?.type,
          event.entitlement?.status ?? "unknown",
          event.notification?.status ?? "not received",
        ];
      }),
    ),
  };
}

function firstAt({ entitlement, notification }: Event): string {
  return entitlement?.steps[0]?.at ?? notification?.steps[0]?.at ?? "";
}

function answerLine(key: { idempotency_key: string; at: string; status: number }): string {
  return `Key ${printable(key.idempotency_key)} was answered with ${key.status} at ${
    time(key.at)
  }.`;
}

function oneEvent({ event_id, entitlement, notification }: Event): string {
  const half = entitlement ?? notification;
  const steps = merged(
    (entitlement?.steps ?? []).map((step) => ({ ...step, service: "entitlement" })),
    (notification?.steps ?? []).map((step) => ({ ...step, service: "notification" })),
  );
  return [
    list([
      ["event", event_id],
      ["of", `${half?.user_id ?? "unknown"}, ${half?.stock_keeping_unit ?? "unknown"}`],
      ["type", `${half?.type ?? "unknown"}, version ${half?.version ?? "unknown"}`],
      ["trace", half?.trace_id ?? "-"],
      ["key", shortKey(entitlement?.idempotency_key ?? "-")],
      ...(entitlement?.caller ? [["caller", entitlement.caller] as [string, string]] : []),
      ["outbox", entitlement?.status ?? "unknown"],
      ["notification", notification?.status ?? "not received"],
    ]),
    "",
    table(
      ["TIME", "SERVICE", "STEP", ""],
      steps.map((step) => [time(step.at), step.service, step.step, detailOf(step)]),
    ),
  ].join("\n");
}

// By time. PUBLISHED is the time of the acknowledgement, and that may reach the relay a little after
// the message reached its receiver; it is told first all the same.
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
    stream_seq === undefined ? undefined : `stream sequence ${stream_seq}`,
    who === undefined ? undefined : `by ${who}: ${reason}`,
    worker === undefined ? undefined : `(worker ${worker}, since ${time(begun_at)})`,
  ].filter((part) => part !== undefined).join(" ");
}
