import {
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  moment,
  text,
  UsageError,
} from "./command.ts";
import { count, time } from "./text.ts";

export const replay: Command = {
  usage: "replay --from TIME [--to TIME]",
  words: 0,
  summary: "publishes again what was published in a range of time",
  options: { from: { type: "string" }, to: { type: "string" }, ...changeOptions },
  help: `
  --from TIME   such as 2026-01-02T03:04:05Z, or how long ago, such as 90m
  --to TIME     likewise; else now${changeHelp}

For a consumer that has lost what it received. The outbox keeps events for a day after they were
published. Every consumer gets them again and removes those it knows; within the duplicate window
(2 minutes) the stream itself does. It runs in batches and may be stopped and called again.`,
  async run(call) {
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
      const answer = await call.entitlement.change("replay", range);
      replayed += answer.replayed;
      complete = answer.complete || range.dry_run;
      call.entitlement.mustAdvance(complete || answer.replayed > 0);
    }
    const what = count(replayed, "event");
    const between = `published from ${time(range.from)} to ${time(range.to)}`;
    const done = range.dry_run ? "would be published again" : "will be published again";
    return {
      problem: false,
      json: { ...range, replayed },
      text: `${what}, ${between}, ${done}.`,
    };
  },
};
