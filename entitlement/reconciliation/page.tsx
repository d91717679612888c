import { pageAnswer } from "@kenri/shared/console/answers.ts";
import type { ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Facts,
  type Site,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { ageOf } from "@kenri/shared/console/text.ts";
import { EventLink } from "@kenri/shared/console/search.tsx";
import type { Reconciliation } from "./on_demand.ts";

export const reconciliationPath = "/console/reconciliation";

export function reconciliationPage(site: Site): ShowPage {
  return async (context, api) => {
    const { proven_until, checked_at, unreceived } = await api.get<Reconciliation>(
      "/debug/entitlement/reconciliation",
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={reconciliationPath} title="Was everything received?">
        <p>
          Every hour this service asks the notification service for the new changes. An event that
          was not received is republished, three times at most; after that it needs an operator.
        </p>
        <Facts
          facts={[
            ["all received until", <When at={proven_until} />],
            [
              "last checked",
              <span>
                <When at={checked_at} />, {ageOf(checked_at)} ago
              </span>,
            ],
          ]}
        />
        <h2>Known as not received</h2>
        <Table
          label="Events that were not received, the oldest first"
          columns={["Changed", "Event", "User", "Item", "Version", "State", "Found", "Republished"]}
          rows={unreceived.map((event) => [
            <When at={event.occurred_at} />,
            <EventLink id={event.event_id} />,
            event.user_id,
            event.stock_keeping_unit,
            event.version,
            <Status site={site} status={event.state} />,
            <When at={event.found_at} />,
            event.mends === 0 ? "–" : (
              <span>
                {event.mends}×, <When at={event.mended_at} />
              </span>
            ),
          ])}
          none="None."
        />
        <h2>At once</h2>
        <p>
          <code>deno task ops reconcile --since 1h --dry-run</code>{" "}
          checks without waiting for the next hour;{" "}
          <code>deno task ops replay --from 1h --dry-run</code>{" "}
          counts the events that a replay would publish again.
        </p>
      </ConsolePage>,
    );
  };
}
