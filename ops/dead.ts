import { type Command, text, UsageError, wholeNumber } from "./command.ts";
import type { ServiceName } from "./routes.ts";
import { errorTable } from "./status.ts";
import { age, list, table, time } from "./text.ts";

const layers = ["outbox", "advisory", "delivery"] as const;
export type Layer = (typeof layers)[number];

export const deadList: Command = {
  usage: "dead list [--layer LAYER] [--error ERROR] [--limit N]",
  words: 0,
  summary: "List dead letters, the oldest first",
  options: { layer: { type: "string" }, error: { type: "string" }, limit: { type: "string" } },
  help: `
  --layer LAYER   outbox (events that could not be published), advisory (messages that JetStream
                  no longer delivers) or delivery (notifications that could not be sent);
                  default: all three
  --error ERROR   only those with exactly this error, as \`ops dead errors\` shows it
  --limit N       at most N of each layer; default: 20`,
  async run(call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const error = text(call.values["error"]);
    const layer = text(call.values["layer"]);
    const pages = await Promise.all(
      (layer === undefined ? layers : [layerOf(layer)]).map((layer) =>
        call.api.ask(`/debug/${serviceOf(layer)}/dead-letters`, { layer, error, limit })
      ),
    );
    const found = pages.flatMap(({ dead_letters }) => dead_letters);
    const more = pages.some(({ next_cursor }) => next_cursor !== undefined);
    return {
      problem: false,
      json: { dead_letters: found, more },
      text: found.length === 0 ? "There are no dead letters." : [
        table(found, {
          "LAYER": ({ layer }) => layer,
          "ID": ({ id }) => id,
          "AGE": ({ age_seconds }) => age(age_seconds),
          "EVENT_ID": ({ event_id }) => event_id,
          "ERROR": ({ error }) => error,
        }),
        ...(more ? ["… and more: use --limit, --layer or --error"] : []),
      ].join("\n"),
    };
  },
};

export const deadErrors: Command = {
  usage: "dead errors",
  words: 0,
  summary: "Count dead letters by error",
  options: {},
  help: `
Counts the oldest 10,000 dead letters of each layer. \`dead list\` and \`dead send-back\` take an ERROR
of this table as --error.`,
  async run({ api }) {
    const answers = await Promise.all([
      api.ask("/debug/entitlement/dead-letters/errors", {}),
      api.ask("/debug/notification/dead-letters/errors", {}),
    ]);
    const errors = answers.flatMap(({ errors }) => errors);
    return {
      problem: false,
      json: { errors },
      text: errors.length === 0 ? "There are no dead letters." : errorTable(errors),
    };
  },
};

export const deadShow: Command = {
  usage: "dead show LAYER ID",
  words: 2,
  summary: "Show one dead letter with its payload",
  options: {},
  help: `
Shows the payload decoded, or in base64 if it can't be decoded. Exit code 1 if there is no such dead
letter, for example because it was sent back.`,
  async run({ api, positionals }) {
    const [layer, id] = [layerOf(positionals[0]), positionals[1]];
    if (id === undefined) throw new UsageError("the ID of the dead letter is required");
    const { dead_letters: [dead] } = await api.ask(
      `/debug/${serviceOf(layer)}/dead-letters`,
      { layer, id },
    );
    if (!dead) return { problem: true, json: null, text: "There is no such dead letter." };
    return {
      problem: false,
      json: dead,
      text: [
        list({
          layer: dead.layer,
          id: dead.id,
          event: dead.event_id ?? "unknown",
          since: `${time(dead.since)}, ${age(dead.age_seconds)} ago`,
          attempts: dead.attempts ?? "-",
          error: dead.error,
        }),
        "",
        JSON.stringify(dead.payload, null, 2),
      ].join("\n"),
    };
  },
};

export function layerOf(given: string | undefined): Layer {
  const layer = layers.find((one) => one === given);
  if (layer) return layer;
  throw new UsageError(`LAYER must be one of ${layers.join(", ")}, not "${given ?? ""}"`);
}

export function serviceOf(layer: Layer): ServiceName {
  return layer === "outbox" ? "entitlement" : "notification";
}
