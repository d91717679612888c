import { shortKey } from "@kenri/shared/console/text.ts";
import { printable } from "@kenri/shared/process/printable.ts";
import type {
  EventTimeline,
  StoredAnswer,
  Timeline,
  TimelineBy,
} from "@kenri/shared/operators/timeline.ts";
import { type Command, text, UsageError, type Values } from "@kenri/shared/ops/command.ts";
import { reads, type Unreachable } from "@kenri/shared/ops/service_api.ts";
import { list, table, time } from "@kenri/shared/ops/text.ts";
import { askEach, type Service } from "./service.ts";
import { detailOf, merged } from "./steps.ts";

type By = { [Name in TimelineBy]?: string };
const route = reads<By, Timeline>("timeline");

export const timeline: Command<Service[]> = {
  usage:
    "timeline EVENT_ID | --user USER | --key IDEMPOTENCY_KEY [--caller NAME] | --reservation ID | --order ID",
  words: 1,
  summary: "Show where an event is: each step in every service, with times and errors",
  options: {
    user: { type: "string" },
    key: { type: "string" },
    caller: { type: "string" },
    reservation: { type: "string" },
    order: { type: "string" },
  },
  help: `
  --user USER       the latest events of a user, one line each
  --key KEY         the event of a request, and the stored answer (kept for 24 hours)
  --caller NAME     whose key it is, if callers need credentials: each caller has keys of its own
  --reservation ID  a reservation, and the event that it led to
  --order ID        an order, and the event that it is about; an event shows all of its orders

One event is shown step by step. Most events go CHANGED → PUBLISHED → RECEIVED → SENT. Other steps are
RETRIED, TAKEN_OVER (the lease of its worker expired), LOST (by the stream), MENDED (republished by
the reconciliation), and what operators did: SENT_BACK, REPLAYED. The last step is SENT, GAVE_UP, or
CAPTURED (JetStream no longer delivers it). What was reserved for a time begins with RESERVED and DUE,
and ends with DONE or CANCELLED; DONE and CHANGED are one commit. An order begins with ORDERED and
ends with SUCCEEDED or GAVE_UP; PUT_OFF and PROBED count no attempt. The outbox keeps an event for a day after it was
published; its receiver keeps it for 30 days.
Exit code 1 if no event is found.`,
  async run(services, { positionals, values }) {
    const [eventId] = positionals;
    const [user, key] = [text(values["user"]), storedKey(values)];
    const [reservation, order] = [text(values["reservation"]), text(values["order"])];
    const given = [eventId, user, key, reservation, order].filter((one) => one !== undefined);
    if (given.length !== 1) {
      throw new UsageError(
        "exactly one of EVENT_ID, --user, --key, --reservation, --order is required",
      );
    }
    const asked = services.filter(({ looks }) => looks.timeline);
    if (user !== undefined) {
      const { events, unreachable } = await find(asked, "user_id", user);
      events.sort((a, b) => firstAt(b).localeCompare(firstAt(a)));
      return {
        problem: events.length === 0,
        unreachable,
        json: { events: events.map(toJson) },
        text: events.length === 0 ? "No event of this user is known." : eventTable(asked, events),
      };
    }
    const { events, keys, unreachable } = reservation !== undefined
      ? await find(asked, "reservation_id", reservation)
      : order !== undefined
      ? await find(asked, "order_id", order)
      : key !== undefined
      ? await find(asked, "idempotency_key", key)
      : await find(asked, "event_id", eventId ?? "");
    return {
      problem: events.length === 0,
      unreachable,
      json: { key: keys[0], events: events.map(toJson) },
      text: [
        ...keys.map(answerLine),
        events.length === 0
          ? "No such event is known."
          : events.map((event) => stepsOf(asked, event)).join("\n\n"),
      ].join("\n"),
    };
  },
};

function storedKey({ key, caller }: Values): string | undefined {
  if (text(caller) === undefined) return text(key);
  if (text(key) === undefined) throw new UsageError("--caller is only for --key");
  return `${text(caller)} ${text(key)}`;
}

/** What each service knows of an event, by the name of the service. */
type Event = Map<string, EventTimeline>;

interface Found {
  events: Event[];
  keys: StoredAnswer[];
  unreachable: Unreachable[];
}

// A service may know an event, but not its user or its key: an old event, one that still waits, or
// one whose user was erased. So in the end each service is asked for what only others returned.
async function find(services: Service[], by: TimelineBy, value: string): Promise<Found> {
  const able = services.filter(({ looks }) => looks.timeline?.by.includes(by));
  const first = await askEach(able, ({ api }) => api.ask(route, { [by]: value }));
  const answers = first.answered.map(({ service, answer }) => ({ service, events: answer.events }));
  const ids = new Set(answers.flatMap(({ events }) => eventIdsOf(events)));
  const isAway = (one: Service) =>
    able.includes(one) && !answers.some(({ service }) => service === one);
  const later = await askEach(
    by === "event_id" ? [] : services.filter((service) => !isAway(service)),
    (service) => {
      const known = answers.find((one) => one.service === service)?.events ?? [];
      return findByIds(service, ids.difference(new Set(eventIdsOf(known))));
    },
  );
  answers.push(...later.answered.map(({ service, answer }) => ({ service, events: answer })));
  return {
    events: joined(services, answers),
    keys: first.answered.flatMap(({ answer }) => answer.key ? [answer.key] : []),
    unreachable: [...first.unreachable, ...later.unreachable],
  };
}

function eventIdsOf(events: EventTimeline[]): string[] {
  return events.flatMap(({ event_id }) => event_id ?? []);
}

const idsAtOnce = 100; // that a service accepts

async function findByIds({ api }: Service, ids: Set<string>): Promise<EventTimeline[]> {
  const left = [...ids];
  const found: EventTimeline[] = [];
  while (left.length > 0) {
    const event_id = left.splice(0, idsAtOnce).join();
    found.push(...(await api.ask(route, { event_id })).events);
  }
  return found;
}

// The services are in the order of the list, in which an event usually passes them.
function joined(
  services: Service[],
  answers: { service: Service; events: EventTimeline[] }[],
): Event[] {
  const events = new Map<string, Event>();
  for (const { name } of services) {
    for (const { events: known } of answers.filter(({ service }) => service.name === name)) {
      for (const one of known) {
        const id = one.event_id ?? one.reservation_id ?? one.order_id ?? "";
        const event = events.get(id) ?? new Map();
        events.set(id, event.set(name, one));
      }
    }
  }
  return [...events.values()];
}

function anyOf(event: Event): EventTimeline | undefined {
  return event.values().next().value;
}

function firstAt(event: Event): string {
  return anyOf(event)?.steps[0]?.at ?? "";
}

// Only the service that reserves, or that has the order, knows it.
function idOf(event: Event, name: "reservation_id" | "order_id"): string | undefined {
  return event.values().find((one) => one[name])?.[name] ?? undefined;
}

function toJson(event: Event): Record<string, unknown> {
  return { event_id: anyOf(event)?.event_id, ...Object.fromEntries(event) };
}

// The status of the event in each service that shows one. What has no event has a status only where
// it was reserved. An event that only its own service knows has none elsewhere.
function statusesOf(services: Service[], event: Event): [title: string, status: string][] {
  const hasEvent = anyOf(event)?.event_id !== null;
  const isShared = services.some(({ name, looks: { timeline } }) =>
    timeline?.absent !== undefined && event.has(name)
  );
  return services.flatMap(({ name, looks: { timeline: { title, absent } = {} } }) => {
    const known = event.get(name)?.status;
    if (title === undefined || (known ?? (isShared ? absent : undefined)) === undefined) return [];
    return [[title, known ?? (hasEvent ? absent : undefined) ?? "-"]];
  });
}

function eventTable(services: Service[], events: Event[]): string {
  const statuses = new Map(
    events.map((event) => [event, new Map(statusesOf(services, event))]),
  );
  const titles = services.flatMap(({ looks }) => looks.timeline?.title ?? [])
    .filter((title) => statuses.values().some((ofEvent) => ofEvent.has(title)));
  return table(events, {
    "CHANGED": (event) => time(firstAt(event)),
    "EVENT_ID": (event) => anyOf(event)?.event_id ?? `reserved ${idOf(event, "reservation_id")}`,
    "ITEM": (event) => anyOf(event)?.stock_keeping_unit,
    "VERSION": (event) => anyOf(event)?.version,
    "TYPE": (event) => anyOf(event)?.type,
    ...Object.fromEntries(titles.map((title) => [
      title.toUpperCase(),
      (event: Event) => statuses.get(event)?.get(title),
    ])),
  });
}

function answerLine({ idempotency_key, at, status }: StoredAnswer): string {
  return `Key ${printable(idempotency_key)} was answered with ${status} at ${time(at)}.\n`;
}

function stepsOf(services: Service[], event: Event): string {
  const known = anyOf(event);
  const { idempotency_key, caller } = event.values().find((one) => one.idempotency_key) ?? {};
  const steps = merged(
    [...event].map(([service, { steps }]) => steps.map((step) => ({ ...step, service }))),
  );
  return [
    list({
      event: known?.event_id ?? "none yet",
      reservation: idOf(event, "reservation_id"),
      order: idOf(event, "order_id"),
      user: known?.user_id ?? "unknown",
      item: known?.stock_keeping_unit ?? "unknown",
      type: known?.type ?? "unknown",
      version: known?.version ?? "unknown",
      trace: known?.trace_id ?? "-",
      key: shortKey(idempotency_key ?? "-"),
      caller: caller || undefined,
      ...Object.fromEntries(statusesOf(services, event)),
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
