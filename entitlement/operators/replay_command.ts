import {
  changeFields,
  changeHelp,
  changeOptions,
  moment,
  type OwnCommand,
  text,
  UsageError,
} from "@kenri/shared/ops/command.ts";
import { changes } from "@kenri/shared/ops/service_api.ts";
import { count, time } from "@kenri/shared/ops/text.ts";
import type { ReplayAnswer, ReplayBody } from "./replay.ts";

const route = changes<ReplayBody, ReplayAnswer>("replay");

export const replay: OwnCommand = {
  usage: "replay --from TIME [--to TIME]",
  words: 0,
  summary: "Republish the events of a time range",
  options: { from: { type: "string" }, to: { type: "string" }, ...changeOptions },
  help: `
  --from TIME     events published since then: a time such as 2026-01-02T03:04:05Z, or an age such
                  as 90m
  --to TIME       events published until then; default: now${changeHelp()}

For a consumer that lost what it had received. The outbox keeps an event for a day after it was
published. Every consumer receives the events again and removes those that it knows; within the
duplicate window (2 minutes) the stream removes them. The command works in batches: it may be
interrupted and repeated.`,
  async run(service, call) {
    const from = text(call.values["from"]);
    if (from === undefined) throw new UsageError("--from is required");
    const range = {
      from: moment("from", from),
      to: moment("to", text(call.values["to"]) ?? "0s"),
      ...changeFields(call),
    };
    let replayed = 0;
    let complete = false;
    while (!complete) {
      const answer = await service.ask(route, range);
      replayed += answer.replayed;
      complete = answer.complete || range.dry_run;
      service.mustAdvance(complete || answer.replayed > 0);
    }
    const what = count(replayed, "event");
    const between = `published from ${time(range.from)} to ${time(range.to)}`;
    const done = range.dry_run ? "would be republished" : "will be republished";
    return {
      problem: false,
      json: { ...range, replayed },
      text: `${what}, ${between}, ${done}.`,
    };
  },
};
