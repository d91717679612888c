import type { ServiceConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { ageOf, perSecond } from "@kenri/shared/console/text.ts";
import { accountsPage } from "./accounts_page.tsx";
import { changeNow, changePage } from "./change_page.tsx";
import { findNow, findPage } from "./find_page.tsx";
import { accountsPath, changePath, findPath } from "./links.tsx";
import { looks, outboxQueue } from "./looks.ts";
import type { AccountsStatus } from "./status.ts";

// The console of this service: from a login or a change of an account to the stream.

const logins = (result: string) => ({ name: "account_resolve_total", labels: { result } });
const counters = {
  known: logins("known"),
  registered: logins("registered"),
  changes: { name: "account_command_total", labels: { result: "applied" } },
  ...workerCounters("relay"),
};

export const accountConsole: ServiceConsole<AccountsStatus, keyof typeof counters> = {
  service: "account",
  looks,
  counters,
  stages: stagesOf,
  duringOutageOfNats: "events wait in the outbox, and gateways ask for each request",
  after: { title: "Gateways", about: "They learn whom to refuse." },
  meaningOfSteps: { CHANGED: "The change was committed together with its event." },
  toneOfStates: { ACTIVE: "good", SUSPENDED: "bad" },
  more: [{ path: accountsPath, title: "Accounts", page: accountsPage }],
  forms: [
    { path: findPath, page: findPage, send: findNow },
    { path: changePath, page: changePage, send: changeNow },
  ],
};

function stagesOf(
  status: AccountsStatus | undefined,
  rates: Samples<keyof typeof counters>,
): Stage[] {
  const published = status?.last_published_at;
  return [
    flowStage(rates, {
      title: "Logins",
      about: "Identities that became a user.",
      counter: "known",
      unit: "logins/s",
      facts: [["first logins", perSecond(rates.rate("registered"))]],
    }),
    flowStage(rates, {
      title: "Changes",
      about: "Requests that change an account.",
      counter: "changes",
      unit: "changes/s",
    }),
    queueStage(outboxQueue, status),
    flowStage(rates, {
      title: "Relay",
      about: "Publishes events in their order.",
      counter: "done",
      unit: "events/s",
      trouble: status?.nats === false ? "NATS down" : undefined,
      facts: [
        ["retries", perSecond(rates.rate("retried"))],
        ["latest", published ? `${ageOf(published)} ago` : "–"],
      ],
    }),
  ];
}
