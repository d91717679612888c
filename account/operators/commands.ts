import {
  type Call,
  changeFields,
  changeHelp,
  changeOptions,
  type OwnCommand,
  type Result,
  text,
  UsageError,
} from "@kenri/shared/ops/command.ts";
import { asks, changes, type Route, type ServiceApi } from "@kenri/shared/ops/service_api.ts";
import { list, table, time } from "@kenri/shared/ops/text.ts";
import type { ChangeAnswer, ChangeBody, RolesBody } from "./change_accounts.ts";
import type { AccountLook, AccountLooks, AccountsQuery } from "./find_accounts.ts";

// The commands of `ops` for accounts. `accounts late` is the command of their outbox.

const findRoute = asks<AccountsQuery, AccountLooks>("find");
const suspendRoute = changes<ChangeBody, ChangeAnswer>("suspend");
const resumeRoute = changes<ChangeBody, ChangeAnswer>("resume");
const rolesRoute = changes<RolesBody, ChangeAnswer>("roles");
const endSessionsRoute = changes<ChangeBody, ChangeAnswer>("end-sessions");

export const accounts: OwnCommand = {
  usage: "accounts USER | --email EMAIL | --provider URL --subject SUBJECT",
  words: 1,
  summary: "Show an account: its state, its roles, its identities, and who changed it and why",
  options: {
    email: { type: "string" },
    provider: { type: "string" },
    subject: { type: "string" },
  },
  help: `
  --email EMAIL     all accounts that log in with this email, verified or not; it is never shown
  --provider URL    the issuer of an identity
  --subject SUBJECT the identity at this issuer (its claim \`sub\`)

Shows the last 20 entries of the audit. An account that was erased is found by its USER alone: it is
DELETED and has no identity. Needs the scope accounts:admin. Exit code 1 if there is no such account.`,
  async run(service, { positionals: [user_id], values }) {
    const query = {
      user_id,
      email: text(values["email"]),
      provider: text(values["provider"]),
      subject: text(values["subject"]),
    };
    const { accounts } = await service.ask(findRoute, given(query));
    return {
      problem: accounts.length === 0,
      json: { accounts },
      text: accounts.map(accountText).join("\n\n") || "There is no such account.",
    };
  },
};

function given(query: AccountsQuery): AccountsQuery {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}

function accountText(account: AccountLook): string {
  const { identities, audit } = account;
  return [
    list({
      account: account.user_id,
      name: account.display_name ?? undefined,
      locale: account.locale ?? undefined,
      status: account.status,
      roles: account.roles.join(", ") || "none",
      version: account.version,
      registered: time(account.created_at),
      changed: time(account.updated_at),
      "session epoch": account.session_epoch,
      "sessions that ended alone": account.ended_sessions,
    }),
    ...(identities.length === 0 ? [] : [
      "",
      table(identities, {
        "PROVIDER": ({ provider }) => provider,
        "SUBJECT": ({ subject }) => subject,
        "EMAIL": emailOf,
        "FIRST LOGIN": ({ created_at }) => time(created_at),
        "LAST LOGIN": ({ last_login_at }) => time(last_login_at),
      }),
    ]),
    ...(audit.length === 0 ? [] : [
      "",
      table(audit, {
        "TIME": ({ occurred_at }) => time(occurred_at),
        "EVENT_ID": ({ event_id }) => event_id,
        "ACTION": ({ action }) => action,
        "WHO": ({ actor }) => actor || "-",
        "WHY": ({ reason }) => reason ?? "-",
      }),
    ]),
  ].join("\n");
}

export function emailOf(
  { has_email, email_verified }: AccountLook["identities"][number],
): string {
  if (!has_email) return "none";
  return email_verified ? "verified" : "not verified";
}

const changeText = `${changeHelp()}

The change is in the audit of the account, with who and why, and its event reaches every gateway. A
repeated command changes nothing. Needs the scope accounts:admin. Exit code 1 if there is no such
account, or if nobody would be left who has the role ADMIN.`;

export const suspend = changeOf(suspendRoute, {
  usage: "accounts suspend USER",
  summary: "Suspend an account: its sessions are refused until it is resumed",
  done: "suspended",
});

export const resume = changeOf(resumeRoute, {
  usage: "accounts resume USER",
  summary: "Resume a suspended account: its sessions work again",
  done: "resumed",
});

export const endSessions = changeOf(endSessionsRoute, {
  usage: "accounts end-sessions USER",
  summary: "End all sessions of a user, who has to log in again",
  done: "logged out everywhere",
});

export const roles: OwnCommand = {
  usage: "accounts roles USER [ROLE…]",
  words: 4,
  summary: "Set the roles of a user: USER, SUPPORT, ADMIN; those not given are taken away",
  options: changeOptions,
  help: changeText,
  async run(service, call) {
    const [user_id, ...roles] = call.positionals;
    const body = { user_id: required(user_id), roles: roles as RolesBody["roles"] };
    const said = `given the roles ${roles.join(", ") || "none"}`;
    return resultOf(await service.ask(rolesRoute, { ...body, ...changeFields(call) }), said);
  },
};

function changeOf(
  route: Route<ChangeBody, ChangeAnswer>,
  { usage, summary, done }: { usage: string; summary: string; done: string },
): OwnCommand {
  return {
    usage,
    words: 1,
    summary,
    options: changeOptions,
    help: changeText,
    run: async (service: ServiceApi, call: Call) => {
      const user_id = required(call.positionals[0]);
      return resultOf(await service.ask(route, { user_id, ...changeFields(call) }), done);
    },
  };
}

function required(user: string | undefined): string {
  if (user === undefined) throw new UsageError("the USER is required");
  return user;
}

function resultOf({ outcome }: ChangeAnswer, done: string): Result {
  const said = {
    CHANGED: `The user was ${done}.`,
    WOULD_BE_CHANGED: `The user would be ${done}.`,
    UNCHANGED: "Nothing to change.",
    UNKNOWN_USER: "There is no such account.",
  };
  return { problem: outcome === "UNKNOWN_USER", json: { outcome }, text: said[outcome] };
}
