import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { z } from "zod";
import type { Identity } from "../account_client.ts";
import { LoginRefused } from "./failures.ts";
import type { Claims } from "./issuer.ts";

// What of an ID token the account service gets. A claim that it would not accept is left out, because a
// name that is too long must not keep anybody from logging in.

const text = fieldSchema();
const optional = {
  email: text,
  email_verified: z.boolean(),
  name: text,
  picture: z.url({ protocol: /^https?$/ }).max(2048).regex(/^[^\p{Cc}]*$/u),
  sid: text, // the session at the issuer
};

export interface Identified {
  identity: Identity;
  sid: string | undefined;
}

export function identified(claims: Claims): Identified {
  const subject = text.safeParse(claims.sub);
  const provider = text.safeParse(claims.iss);
  if (!subject.success || !provider.success) throw new LoginRefused("unusable subject");
  const { sid, ...known } = {
    email: accepted(optional.email, claims["email"]),
    email_verified: accepted(optional.email_verified, claims["email_verified"]),
    name: accepted(optional.name, claims["name"]),
    picture: accepted(optional.picture, claims["picture"]),
    sid: accepted(optional.sid, claims["sid"]),
  };
  return { identity: { provider: provider.data, subject: subject.data, ...known }, sid };
}

function accepted<Value>(schema: z.ZodType<Value>, claim: unknown): Value | undefined {
  return schema.safeParse(claim).data;
}
