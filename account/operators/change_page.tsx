import type { Context } from "hono";
import { pageAnswer, seeOther } from "@kenri/shared/console/answers.ts";
import type { ShowPage } from "@kenri/shared/console/ask.ts";
import { formToken, leaveNote, readForm } from "@kenri/shared/console/forms.ts";
import { ConsolePage, type Site } from "@kenri/shared/console/layout.tsx";
import { type Signature, signatureIn, Signing } from "@kenri/shared/console/signing.tsx";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { JSX } from "hono/jsx/jsx-runtime";
import { allRoles } from "../user.ts";
import { findAccounts } from "./accounts_page.tsx";
import { type Action, actions } from "./actions.ts";
import type { ChangeAnswer } from "./change_accounts.ts";
import type { AccountLook } from "./find_accounts.ts";
import { AccountLink, accountsPath, changePath, pathOf } from "./links.tsx";

// Asks who changes an account and why, and changes it.

export function changePage(site: Site): ShowPage {
  return async (context, api) => {
    const [, query] = context.req.url.split("?", 2);
    const { user_id, action } = askedIn(new URLSearchParams(query));
    const [account] = await findAccounts(api, { user_id });
    if (!account) throw new ApiError("NOT_FOUND", "there is no such account");
    return answer(context, site, { action, account });
  };
}

export function changeNow(site: Site): ShowPage {
  return async (context, api) => {
    const form = await readForm(context);
    const { user_id, action } = askedIn(form);
    const signature = signatureIn(form);
    const roles = action.name === "roles" ? { roles: form.getAll("role") } : {};
    try {
      const { outcome } = await api.post<ChangeAnswer>(`/operations/account/${action.name}`, {
        ...{ user_id, ...roles, ...signature },
      });
      leaveNote(context, noteOf(outcome));
    } catch (error) {
      if (!(error instanceof ApiError) || ![400, 409].includes(error.status)) throw error;
      const [account] = await findAccounts(api, { user_id });
      if (!account) throw error;
      return answer(context, site, { action, account, signature, problem: error.message });
    }
    return seeOther(context, pathOf(user_id));
  };
}

function askedIn(fields: URLSearchParams): { user_id: string; action: Action } {
  const action = actions.find(({ name }) => name === fields.get("action"));
  const user_id = fields.get("user_id");
  if (!action || !user_id) throw new ApiError("BAD_REQUEST", "user_id and action are required");
  return { user_id, action };
}

function noteOf(outcome: ChangeAnswer["outcome"]): string {
  if (outcome === "UNKNOWN_USER") return "There is no such account.";
  return outcome === "CHANGED" ? "The account was changed." : "Nothing had to be changed.";
}

interface Asked {
  action: Action;
  account: AccountLook;
  signature?: Signature;
  problem?: string;
}

function answer(context: Context, site: Site, asked: Asked): Response {
  const { account } = asked;
  return pageAnswer(
    context,
    <ConsolePage site={site} path={accountsPath} title={asked.action.title}>
      <ChangeForm
        {...asked}
        token={formToken(context)}
        caller={context.get("caller")?.name ?? ""}
      />
      <p>
        <a href={pathOf(account.user_id)}>Back to the account</a>
      </p>
    </ConsolePage>,
    asked.problem ? 400 : 200,
  );
}

function ChangeForm(
  { action, account, signature = {}, problem, token, caller }: Asked & {
    token: string;
    caller: string;
  },
): JSX.Element {
  return (
    <form class="card stacked" method="post" action={changePath}>
      <p>
        <b>{account.display_name ?? "Account"}</b> <AccountLink id={account.user_id} />
      </p>
      <p>{action.effect}</p>
      {problem && <p class="note bad" role="alert">{problem}</p>}
      <input type="hidden" name="token" value={token} />
      <input type="hidden" name="user_id" value={account.user_id} />
      <input type="hidden" name="action" value={action.name} />
      {action.name === "roles" && <Roles chosen={account.roles} />}
      <Signing
        caller={caller}
        signature={signature}
        why="Why is it changed?"
        keptIn="the audit of the account"
      />
      <button type="submit">{action.title}</button>
    </form>
  );
}

function Roles({ chosen }: { chosen: readonly string[] }): JSX.Element {
  return (
    <fieldset>
      <legend>Roles</legend>
      {allRoles.map((role) => (
        <label>
          <input type="checkbox" name="role" value={role} checked={chosen.includes(role)} /> {role}
        </label>
      ))}
    </fieldset>
  );
}
