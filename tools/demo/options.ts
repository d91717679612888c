import { parseArgs } from "node:util";
import { urlOfIssuer } from "../dev/issuer.ts";
import { devSettings } from "../dev/settings.ts";

export const usage =
  `deno task demo [--changes N] [--rate N] [--entitlement URL] [--notification URL]
               [--account URL] [--gateway URL] [--matchmaking URL]

  --changes       number of requests (150)
  --rate          requests per second (10)
  --entitlement   URLs of the services; the default is what their settings
  --notification  ENTITLEMENT_HTTP_HOST, _PORT and NOTIFICATION_HTTP_HOST, _PORT name,
  --account       and so on. Without an account service the users have no accounts
  --gateway       where these can log in
  --matchmaking   where players meet; without it, nobody plays
  --token         the credential, if the services require one; KENRI_TOKEN is safer`;

export interface Options {
  steps: number;
  perSecond: number;
  entitlement: string;
  notification: string;
  account: string;
  gateway: string;
  matchmaking: string;
  issuer: string;
  headers: Record<string, string>;
}

const read = (name: string) => Deno.env.get(name);

export function readOptions(): Options {
  const settings = devSettings(read, {});
  const url = (name: string) =>
    `http://${settings[`${name}_HTTP_HOST`]}:${settings[`${name}_HTTP_PORT`]}`;
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      "changes": { type: "string", default: "150" },
      "rate": { type: "string", default: "10" },
      "entitlement": { type: "string", default: url("ENTITLEMENT") },
      "notification": { type: "string", default: url("NOTIFICATION") },
      "account": { type: "string", default: url("ACCOUNT") },
      "gateway": { type: "string", default: url("GATEWAY") },
      "matchmaking": { type: "string", default: url("MATCHMAKING") },
      "token": { type: "string" },
    },
  });
  const token = values.token ?? Deno.env.get("KENRI_TOKEN");
  return {
    steps: wholeNumber("changes", values.changes, 10_000),
    perSecond: wholeNumber("rate", values.rate, 1_000),
    entitlement: values.entitlement.replace(/\/$/, ""),
    notification: values.notification.replace(/\/$/, ""),
    account: values.account.replace(/\/$/, ""),
    gateway: values.gateway,
    matchmaking: values.matchmaking.replace(/\/$/, ""),
    issuer: urlOfIssuer(read) ?? read("GATEWAY_ISSUER") ?? "",
    headers: token ? { Authorization: `Bearer ${token}` } : {},
  };
}

function wholeNumber(name: string, written: string, max: number): number {
  const value = /^\d+$/.test(written) ? Number(written) : 0;
  if (value >= 1 && value <= max) return value;
  throw new Error(`--${name} must be a whole number from 1 to ${max}, not "${written}"`);
}
