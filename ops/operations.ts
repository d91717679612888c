import type { OperationPage, OperationsQuery } from "@kenri/shared/operators/operation_log.ts";
import { type Command, wholeNumber } from "@kenri/shared/ops/command.ts";
import { reads } from "@kenri/shared/ops/service_api.ts";
import { table, time } from "@kenri/shared/ops/text.ts";
import { askEach, type Service } from "./service.ts";

const route = reads<OperationsQuery, OperationPage>("operations");

export const operations: Command<Service[]> = {
  usage: "operations [--limit N]",
  words: 0,
  summary: "List what operators have changed, who did it and why, the newest first",
  options: { limit: { type: "string" } },
  help: `
  --limit N       at most N of each service; default: 20

With --json each operation has its items: what it changed, and from which state.`,
  async run(services, call) {
    const limit = wholeNumber(call, "limit", 200) ?? 20;
    const { answered, unreachable } = await askEach(
      services.filter(({ looks }) => looks.logsOperations),
      ({ api }) => api.ask(route, { limit }),
    );
    const found = answered.flatMap(({ answer }) => answer.operations)
      .sort((a, b) => b.done_at.localeCompare(a.done_at));
    return {
      problem: false,
      unreachable,
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
