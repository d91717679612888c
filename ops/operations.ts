import { type Command, wholeNumber } from "./command.ts";
import { table, time } from "./text.ts";

export const operations: Command = {
  usage: "operations [--limit N]",
  words: 0,
  summary: "List what operators have changed, who did it and why, the newest first",
  options: { limit: { type: "string" } },
  help: `
  --limit N       at most N of each service; default: 20

With --json each operation has its items: what it changed, and from which state.`,
  async run(call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const pages = await Promise.all([
      call.api.ask("/debug/entitlement/operations", { limit }),
      call.api.ask("/debug/notification/operations", { limit }),
    ]);
    const found = pages.flatMap(({ operations }) => operations)
      .sort((a, b) => b.done_at.localeCompare(a.done_at));
    return {
      problem: false,
      json: { operations: found },
      text: found.length === 0 ? "No operator has changed anything." : table(found, {
        "TIME": ({ done_at }) => time(done_at),
        "WHAT": ({ kind }) => kind,
        "LAYER": ({ layer }) => layer,
        "ITEMS": ({ items }) => items.length,
        "WHO": ({ who }) => who,
        "WHY": ({ reason }) => reason,
      }),
    };
  },
};
