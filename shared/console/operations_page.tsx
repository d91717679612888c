import type { OperationRecord } from "../operators/operations.ts";
import { pageAnswer } from "./answers.ts";
import { queryOf } from "./ask.ts";
import type { ShowPage } from "./console.tsx";
import { ConsolePage, Json, NextPage, type Site, Table, When } from "./layout.tsx";
import { count } from "./text.ts";

// The record: what was changed by hand or mended by the hourly check.

export const operationsPath = "/console/operations";

interface Records {
  operations: OperationRecord[];
  next_cursor?: string;
}

export function operationsPage(site: Site): ShowPage {
  return async (context, api) => {
    const { operations, next_cursor } = await api.get<Records>(
      `/debug/${site.service}/operations`,
      { cursor: context.req.query("cursor"), limit: "25" },
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={operationsPath} title="Record of operations">
        <p>Who changed what, when, why, and from which state. Nothing here can be changed.</p>
        <Table
          label="Operations, the newest first"
          columns={["Time", "What", "Layer", "Who", "Why", "Items"]}
          rows={operations.map(({ done_at, kind, layer, who, reason, items }) => [
            <When at={done_at} />,
            kind,
            layer,
            who,
            reason,
            <details>
              <summary>{count(items.length, "item")}</summary>
              <Json value={items} label="Items" />
            </details>,
          ])}
          none="Nothing has been changed by hand."
        />
        <NextPage href={next_cursor && `${operationsPath}${queryOf({ cursor: next_cursor })}`} />
      </ConsolePage>,
    );
  };
}
