import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { type Api, queryOf, type ShowPage } from "@kenri/shared/console/ask.ts";
import { takeNote } from "@kenri/shared/console/forms.ts";
import {
  ConsolePage,
  Facts,
  type Site,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink, SearchField } from "@kenri/shared/console/search.tsx";
import { whole } from "@kenri/shared/console/text.ts";
import { actions } from "./actions.ts";
import { emailOf } from "./commands.ts";
import type { AccountLook, AccountLooks, AccountsQuery } from "./find_accounts.ts";
import { AccountLink, accountsPath, changePath, findPath } from "./links.tsx";

// An account with its identities and its audit, and what may be done with it.

export function accountsPage(site: Site): ShowPage {
  return async (context, api) => {
    const user_id = context.req.query("user_id") ?? "";
    const found = user_id === "" ? undefined : await findAccounts(api, { user_id });
    return pageAnswer(
      context,
      <ConsolePage site={site} path={accountsPath} title="Accounts" note={takeNote(context)}>
        <form class="search" method="get" action={accountsPath} role="search">
          <SearchField id="user_id" label="User id" value={user_id} maxlength={255} />
          <button type="submit">Find</button>
        </form>
        <p>
          <a href={findPath}>Find by email or identity</a>
        </p>
        {found?.map((account) => <Account site={site} account={account} />)}
        {found?.length === 0 && <p class="empty">There is no such account.</p>}
      </ConsolePage>,
    );
  };
}

export async function findAccounts(api: Api, query: AccountsQuery): Promise<AccountLook[]> {
  const { accounts } = await api.post<AccountLooks>("/debug/account/find", query);
  return accounts;
}

function Account({ site, account }: { site: Site; account: AccountLook }): JSX.Element {
  const { user_id, status, identities, audit } = account;
  return (
    <>
      <article class="card">
        <h2>
          {account.display_name ?? "Account"} <Status site={site} status={status} />
        </h2>
        <Facts
          facts={[
            ["account", <code>{user_id}</code>],
            ["roles", account.roles.join(", ") || "none"],
            ["locale", account.locale ?? "–"],
            ["version", whole(account.version)],
            ["registered", <When at={account.created_at} />],
            ["changed", <When at={account.updated_at} />],
            ["session epoch", whole(account.session_epoch)],
            ["sessions that ended alone", whole(account.ended_sessions)],
          ]}
        />
        {status !== "DELETED" && (
          <p>
            {actions.filter((action) => action.isFor(account)).map(({ name, title }) => (
              <>
                <a href={`${changePath}${queryOf({ user_id, action: name })}`}>{title}</a>
                {" "}
              </>
            ))}
          </p>
        )}
      </article>
      <Table
        label="Identities, the last login first"
        columns={["Provider", "Subject", "Email", "First login", "Last login"]}
        rows={identities.map((identity): Child[] => [
          identity.provider,
          <code>{identity.subject}</code>,
          emailOf(identity),
          <When at={identity.created_at} />,
          <When at={identity.last_login_at} />,
        ])}
        none="No identity leads to this account."
      />
      <h2>Audit</h2>
      <Table
        label="What was changed, the newest first"
        columns={["Time", "What", "Who", "Why", "Event"]}
        rows={audit.map((entry): Child[] => [
          <When at={entry.occurred_at} />,
          entry.action,
          entry.actor || "–",
          entry.reason ?? "–",
          <EventLink id={entry.event_id} />,
        ])}
        none="The audit has no entry."
      />
    </>
  );
}

/** The accounts that were found, to choose one. */
export function FoundAccounts({ site, found }: { site: Site; found: AccountLook[] }): JSX.Element {
  return (
    <Table
      label="Accounts, the newest first"
      columns={["Account", "Name", "State", "Roles", "Registered"]}
      rows={found.map((account): Child[] => [
        <AccountLink id={account.user_id} />,
        account.display_name ?? "–",
        <Status site={site} status={account.status} />,
        account.roles.join(", ") || "none",
        <When at={account.created_at} />,
      ])}
      none="There is no such account."
    />
  );
}
