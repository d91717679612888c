import { type Command, wholeNumber } from "./command.ts";
import { table, time } from "./text.ts";

interface Operation {
  operation_id: string;
  done_at: string;
  kind: string;
  layer: string;
  who: string;
  reason: string;
  items: unknown[];
}

export const operations: Command = {
  usage: "operations [--limit N]",
  words: 0,
  summary: "who changed what by hand, when and why, the newest first",
  options: { limit: { type: "string" } },
  help: `
  --limit   at most so many of each service (20)

With --json each has its items: what was changed, and from which state.`,
  async run(call) {
    const limit = `${wholeNumber(call, "limit", 200) ?? 20}`;
    const pages = await Promise.all([
      call.entitlement.look("operations", { limit }),
      call.notification.look("operations", { limit }),
    ]);
    const found: Operation[] = pages.flatMap(({ operations }) => operations)
      .sort((a, b) => b.done_at.localeCompare(a.done_at));
    return {
      problem: false,
      json: { operations: found },
      text: found.length === 0 ? "Nothing was changed by hand." : table(
        ["TIME", "WHAT", "LAYER", "ITEMS", "WHO", "WHY"],
        found.map(({ done_at, kind, layer, items, who, reason }) => [
          time(done_at),
          kind,
          layer,
          items.length,
          who,
          reason,
        ]),
      ),
    };
  },
};
