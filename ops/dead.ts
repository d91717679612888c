import type {
  DeadLetterCounts,
  DeadLetterPage,
  DeadLettersQuery,
} from "@kenri/shared/operators/dead_letters.ts";
import { type Command, text, UsageError, wholeNumber } from "@kenri/shared/ops/command.ts";
import { type NoFields, reads } from "@kenri/shared/ops/service_api.ts";
import { age, list, table, time } from "@kenri/shared/ops/text.ts";
import { askEach, layerOf, layersOf, type Listed, type Service } from "./service.ts";
import { errorTable } from "./status.ts";

const listRoute = reads<DeadLettersQuery, DeadLetterPage>("dead-letters");
const errorsRoute = reads<NoFields, DeadLetterCounts>("dead-letters/errors");

/** The layers with what their dead letters are, for the help of a command. */
function layerHelp(services: Listed[]): string {
  const layers = layersOf(services).map(({ layer, about }) => [layer, about]);
  return list(Object.fromEntries(layers)).replaceAll(/^/gm, "  ");
}

export const deadList = (listed: Listed[]): Command<Service[]> => ({
  usage: "dead list [--layer LAYER] [--error ERROR] [--limit N]",
  words: 0,
  summary: "List dead letters, the oldest first",
  options: { layer: { type: "string" }, error: { type: "string" }, limit: { type: "string" } },
  help: `
  --layer LAYER   default: all layers
  --error ERROR   only those with exactly this error, as \`ops dead errors\` shows it
  --limit N       at most N of each layer; default: 20

Layers:
${layerHelp(listed)}`,
  async run(services, call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const error = text(call.values["error"]);
    const layer = text(call.values["layer"]);
    const wanted = layer === undefined ? layersOf(services) : [layerOf(services, layer)];
    const ofService = Map.groupBy(wanted, ({ service }) => service);
    const { answered, unreachable } = await askEach(
      [...ofService.keys()],
      (service) =>
        Promise.all(
          (ofService.get(service) ?? []).map(({ layer }) =>
            service.api.ask(listRoute, { layer, error, limit })
          ),
        ),
    );
    const pages = answered.flatMap(({ answer }) => answer);
    const found = pages.flatMap(({ dead_letters }) => dead_letters);
    const more = pages.some(({ next_cursor }) => next_cursor !== undefined);
    return {
      problem: false,
      unreachable,
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
});

export const deadErrors: Command<Service[]> = {
  usage: "dead errors",
  words: 0,
  summary: "Count dead letters by error",
  options: {},
  help: `
Counts the oldest 10,000 dead letters of each layer. \`dead list\` and \`dead send-back\` take an ERROR
of this table as --error.`,
  async run(services) {
    const { answered, unreachable } = await askEach(
      services.filter(({ looks }) => looks.deadLetters),
      ({ api }) => api.ask(errorsRoute, {}),
    );
    const errors = answered.flatMap(({ answer }) => answer.errors);
    return {
      problem: false,
      unreachable,
      json: { errors },
      text: errors.length === 0 ? "There are no dead letters." : errorTable(errors),
    };
  },
};

export const deadShow: Command<Service[]> = {
  usage: "dead show LAYER ID",
  words: 2,
  summary: "Show one dead letter with its payload",
  options: {},
  help: `
Shows the payload decoded, or in base64 if it can't be decoded. Exit code 1 if there is no such dead
letter, for example because it was sent back.`,
  async run(services, { positionals }) {
    const { layer, service } = layerOf(services, positionals[0]);
    const id = positionals[1];
    if (id === undefined) throw new UsageError("the ID of the dead letter is required");
    const { dead_letters: [dead] } = await service.api.ask(listRoute, { layer, id });
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
