import type { OperationPage } from "../operators/operation_log.ts";
import { pageAnswer } from "./answers.ts";
import { queryOf, type ShowPage } from "./ask.ts";
import { ConsolePage, Json, NextPage, type Site, Table, When } from "./layout.tsx";
import { count } from "./text.ts";
import { meaningOfOperations } from "./words.ts";

// The log of what operators and the hourly reconciliation have changed.

export const operationsPath = "/console/operations";

export function operationsPage(site: Site): ShowPage {
  return async (context, api) => {
    const { operations, next_cursor } = await api.get<OperationPage>(
      `/debug/${site.service}/operations`,
      { cursor: context.req.query("cursor"), limit: "25" },
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={operationsPath} title="Operations">
        <p>Who changed what, when and why, and the state before. This log can't be edited.</p>
        <Table
          label="Operations, the newest first"
          columns={["Time", "Kind", "Layer", "Who", "Reason", "Items"]}
          rows={operations.map(({ done_at, kind, layer, who, reason, items }) => [
            <When at={done_at} />,
            <span>
              {meaningOfOperations[kind]} <span class="muted">{kind}</span>
            </span>,
            layer,
            who,
            reason,
            <details>
              <summary>{count(items.length, "item")}</summary>
              <Json value={items} label="Items" />
            </details>,
          ])}
          none="No operations yet."
        />
        <NextPage href={next_cursor && `${operationsPath}${queryOf({ cursor: next_cursor })}`} />
      </ConsolePage>,
    );
  };
}
