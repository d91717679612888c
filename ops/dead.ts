import {
  type Call,
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  type Result,
  text,
  UsageError,
  wholeNumber,
} from "./command.ts";
import type { Service } from "./service.ts";
import { age, ageOf, count, list, table, time } from "./text.ts";

const layers = ["outbox", "advisory", "delivery"] as const;
type Layer = (typeof layers)[number];

interface DeadLetter {
  layer: Layer;
  id: string;
  event_id: string | null;
  error: string;
  since: string;
  age_seconds: number;
  attempts: number | null;
  payload: unknown;
}

export const deadList: Command = {
  usage: "dead list [--layer LAYER] [--error ERROR] [--limit N]",
  words: 0,
  summary: "what was given up, the oldest first",
  options: { layer: { type: "string" }, error: { type: "string" }, limit: { type: "string" } },
  help: `
  --layer   outbox (never reached the stream), advisory (JetStream gave the message up) or
            delivery (its user could not be told); else all three
  --error   only those of exactly this error, as \`ops dead errors\` shows it
  --limit   at most so many of each layer (20)`,
  async run(call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const pages = await Promise.all(
      layersOf(call).map((layer) =>
        serviceOf(call, layer).look("dead-letters", {
          layer,
          error: text(call.values["error"]),
          limit: `${limit}`,
        })
      ),
    );
    const found: DeadLetter[] = pages.flatMap(({ dead_letters }) => dead_letters);
    const more = pages.some(({ next_cursor }) => next_cursor !== undefined);
    return {
      problem: false,
      json: { dead_letters: found, more },
      text: found.length === 0 ? "There are no dead letters." : [
        table(
          ["LAYER", "ID", "AGE", "EVENT_ID", "ERROR"],
          found.map(({ layer, id, age_seconds, event_id, error }) => [
            layer,
            id,
            age(age_seconds),
            event_id,
            error,
          ]),
        ),
        ...(more ? ["… and more: --limit, --layer or --error show others"] : []),
      ].join("\n"),
    };
  },
};

export const deadErrors: Command = {
  usage: "dead errors",
  words: 0,
  summary: "how many were given up for which error",
  options: {},
  help: `
Counts the oldest 10,000 of each layer. What you see as ERROR is what --error wants.`,
  async run({ entitlement, notification }) {
    const found = await Promise.all([
      entitlement.look("dead-letters/errors"),
      notification.look("dead-letters/errors"),
    ]);
    const errors: { layer: string; error: string; count: number; oldest: string }[] = found
      .flatMap(({ errors }) => errors);
    return {
      problem: false,
      json: { errors },
      text: errors.length === 0 ? "There are no dead letters." : table(
        ["LAYER", "COUNT", "OLDEST", "ERROR"],
        errors.map(({ layer, count, oldest, error }) => [layer, count, ageOf(oldest), error]),
      ),
    };
  },
};

export const deadShow: Command = {
  usage: "dead show LAYER ID",
  words: 2,
  summary: "one dead letter with its payload",
  options: {},
  help: `
The payload is decoded; what can't be decoded is shown as it came, in base64. Exit code 1 when it
is no dead letter (any more).`,
  async run(call) {
    const [layer, id] = [layerOf(call.positionals[0]), call.positionals[1]];
    if (id === undefined) throw new UsageError("the ID of the dead letter is required");
    const { dead_letters } = await serviceOf(call, layer).look("dead-letters", { layer, id });
    const [dead]: DeadLetter[] = dead_letters;
    if (!dead) return { problem: true, json: null, text: "That is no dead letter (any more)." };
    return {
      problem: false,
      json: dead,
      text: [
        list([
          ["layer", dead.layer],
          ["id", dead.id],
          ["event", dead.event_id ?? "unknown"],
          ["since", `${time(dead.since)}, ${age(dead.age_seconds)} ago`],
          ["attempts", dead.attempts ?? "-"],
          ["error", dead.error],
        ]),
        "",
        JSON.stringify(dead.payload, null, 2),
      ].join("\n"),
    };
  },
};

interface Sent {
  layer: string;
  id: string;
  event_id: string | null;
  outcome: string;
  why?: string;
}

export const deadSendBack: Command = {
  usage: "dead send-back LAYER (ID… | --error ERROR)",
  words: Infinity,
  summary: "tries again what was given up",
  options: { error: { type: "string" }, ...changeOptions },
  help: `
  ID…           these; or
  --error       all of exactly this error, as \`ops dead errors\` shows it${changeHelp}

An event of the outbox is published again, a captured message is received again, a notification
is delivered again, each with all its attempts. It is safe to repeat, and for two people at once:
only what is a dead letter at that moment is sent back, and receivers remove duplicates.
Exit code 1 when something was refused, or nothing was a dead letter.`,
  async run(call) {
    const layer = layerOf(call.positionals[0]);
    const ids = call.positionals.slice(1);
    const error = text(call.values["error"]);
    if ((ids.length > 0) === (error !== undefined)) {
      throw new UsageError("either IDs or --error are required");
    }
    const service = serviceOf(call, layer);
    const fields = { layer, ...changeFields(call) };
    const sent: Sent[] = [];
    if (ids.length > 0) {
      for (let i = 0; i < ids.length; i += maxIds) {
        const some = ids.slice(i, i + maxIds);
        sent.push(...(await service.change(sendBack, { ...fields, ids: some })).dead_letters);
      }
    } else {
      const pages = service.changePages(sendBack, () => ({ ...fields, error, limit: maxIds }));
      for await (const { dead_letters } of pages) sent.push(...dead_letters);
    }
    return resultOf(sent);
  },
};

const sendBack = "dead-letters/send-back";
const maxIds = 200; // that the service takes at once
const shownAtMost = 20;

function resultOf(sent: Sent[]): Result {
  const of = (outcome: string) => sent.filter((one) => one.outcome === outcome).length;
  const dryRun = of("WOULD_BE_SENT_BACK");
  const summary = [
    ...(dryRun > 0 ? [`${count(dryRun, "dead letter")} would be sent back`] : []),
    ...(dryRun === 0 ? [`${count(of("SENT_BACK"), "dead letter")} sent back`] : []),
    ...(of("REFUSED") > 0 ? [`${of("REFUSED")} refused`] : []),
    ...(of("NOT_DEAD") > 0 ? [`${of("NOT_DEAD")} not dead (any more)`] : []),
  ].join(", ");
  const shown = sent.toSorted((a, b) => Number(!a.why) - Number(!b.why)).slice(0, shownAtMost);
  return {
    problem: of("REFUSED") > 0 || of("SENT_BACK") + dryRun === 0,
    json: { dead_letters: sent },
    text: [
      ...(sent.length > 0
        ? [
          table(
            ["ID", "EVENT_ID", "OUTCOME", ""],
            shown.map(({ id, event_id, outcome, why }) => [id, event_id, outcome, why ?? ""]),
          ),
          ...(sent.length > shownAtMost ? [`… and ${sent.length - shownAtMost} more`] : []),
          "",
        ]
        : []),
      `${summary}.`,
    ].join("\n"),
  };
}

function layersOf({ values }: Call): readonly Layer[] {
  const layer = text(values["layer"]);
  return layer === undefined ? layers : [layerOf(layer)];
}

function layerOf(given: string | undefined): Layer {
  const layer = layers.find((one) => one === given);
  if (layer) return layer;
  throw new UsageError(`LAYER must be one of ${layers.join(", ")}, not "${given ?? ""}"`);
}

function serviceOf({ entitlement, notification }: Call, layer: Layer): Service {
  return layer === "outbox" ? entitlement : notification;
}
