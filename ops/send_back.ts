import type { SendBackAnswer, SendBackBody } from "@kenri/shared/operators/send_back.ts";
import {
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  type Result,
  text,
  UsageError,
} from "@kenri/shared/ops/command.ts";
import { changes } from "@kenri/shared/ops/service_api.ts";
import { count, table } from "@kenri/shared/ops/text.ts";
import { layerOf, type Service } from "./service.ts";

const route = changes<SendBackBody, SendBackAnswer>("dead-letters/send-back");

const maxIds = 200; // that the service accepts at once
const shownAtMost = 20;

export const deadSendBack: Command<Service[]> = {
  usage: "dead send-back LAYER (ID… | --error ERROR)",
  words: Infinity,
  summary: "Retry dead letters",
  options: { error: { type: "string" }, ...changeOptions },
  help: `
  ID…             the dead letters with these ids, or
  --error ERROR   all with exactly this error, as \`ops dead errors\` shows it${changeHelp()}

Each is tried again, with all its attempts: an event of the outbox is republished, a captured message
is received again. The command may be repeated, and two people may run it at once: it changes only
what is still a dead letter, and receivers remove duplicates.
Exit code 1 if something was refused, or if none of them is a dead letter.`,
  async run(services, call) {
    const { layer, service: { api } } = layerOf(services, call.positionals[0]);
    const ids = call.positionals.slice(1);
    const error = text(call.values["error"]);
    if ((ids.length > 0) === (error !== undefined)) {
      throw new UsageError("either IDs or --error is required");
    }
    const fields = { layer, ...changeFields(call) };
    const sent: DeadLetters = [];
    if (ids.length > 0) {
      for (let i = 0; i < ids.length; i += maxIds) {
        const some = ids.slice(i, i + maxIds);
        sent.push(...(await api.ask(route, { ...fields, ids: some })).dead_letters);
      }
    } else {
      const pages = api.pages(route, () => ({ ...fields, error, limit: maxIds }));
      for await (const { dead_letters } of pages) sent.push(...dead_letters);
    }
    return resultOf(sent);
  },
};

type DeadLetters = SendBackAnswer["dead_letters"];

function resultOf(sent: DeadLetters): Result {
  const of = (outcome: DeadLetters[number]["outcome"]) =>
    sent.filter((one) => one.outcome === outcome).length;
  const dryRun = of("WOULD_BE_SENT_BACK");
  const summary = [
    dryRun > 0
      ? `${count(dryRun, "dead letter")} would be sent back`
      : `${count(of("SENT_BACK"), "dead letter")} sent back`,
    ...(of("REFUSED") > 0 ? [`${of("REFUSED")} refused`] : []),
    ...(of("NOT_DEAD") > 0 ? [`${of("NOT_DEAD")} not a dead letter`] : []),
  ].join(", ");
  // Refusals come first, because they have a reason that should be seen.
  const rows = table(sent.toSorted((a, b) => Number(!a.why) - Number(!b.why)), {
    "ID": ({ id }) => id,
    "EVENT_ID": ({ event_id }) => event_id,
    "OUTCOME": ({ outcome }) => outcome,
    "": ({ why }) => why ?? "",
  }, shownAtMost);
  return {
    problem: of("REFUSED") > 0 || of("SENT_BACK") + dryRun === 0,
    json: { dead_letters: sent },
    text: [...(sent.length > 0 ? [rows, ""] : []), `${summary}.`].join("\n"),
  };
}
