import { z } from "zod";
import { count, number } from "../process/setting_kinds.ts";
import { ApiError } from "../http/errors.ts";
import { refusedBy } from "../http/limits.ts";
import type { Caller } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";

// How often one caller may ask: a bucket of tokens for each, of which a request takes one, and which
// fills again evenly.

export const rateSettings = {
  "access.rate": number({ min: 0.01, max: 1_000_000, whole: false }).optional().describe(
    "Requests per second of each caller ([limits.md](limits.md))",
  ),
  "access.burst": count().optional().meta({
    description: "Requests that one caller may make at once",
    shownDefault: "the rate, rounded up",
  }),
};

export interface RateOptions {
  perSecond: number;
  burst: number; // what the bucket holds
}

export const burstHasRate = z.refine<Record<string, unknown>>(
  (settings) => settings["access.burst"] === undefined || settings["access.rate"] !== undefined,
  { path: ["access.burst"], message: "needs ACCESS_RATE, too: without it there is no limit" },
);

// Without a rate there is no limit; without a burst the bucket holds what comes in a second.
export function rateOf(
  settings: z.output<z.ZodObject<typeof rateSettings>>,
): RateOptions | undefined {
  const perSecond = settings["access.rate"];
  if (perSecond === undefined) return undefined;
  return { perSecond, burst: settings["access.burst"] ?? Math.max(1, Math.ceil(perSecond)) };
}

// After authentication, so whoever is answered without one, as health is, is not counted. What the console
// asks its own service is not either.
export function rateLimited(
  authenticator: Authenticator,
  rate: RateOptions | undefined,
): Authenticator {
  if (!rate) return authenticator;
  const admit = admitAtRate(rate);
  const counted = (caller: Caller) => {
    admit(caller);
    return caller;
  };
  const { open, authenticate, sessions } = authenticator;
  return {
    open,
    authenticate: (credential) => {
      const caller = authenticate(credential);
      return caller instanceof Promise ? caller.then(counted) : counted(caller);
    },
    sessions: sessions && {
      cookies: sessions.cookies,
      begin: async (credential, cookie) => {
        const begun = await sessions.begin(credential, cookie);
        admit(begun.caller);
        return begun;
      },
      resume: async (session, cookie) => counted(await sessions.resume(session, cookie)),
    },
  };
}

// Callers may be as many as an issuer names. Whoever was not heard of while so many others were is
// forgotten, and has a full bucket again.
const remembered = 10_000;

// Throws when the bucket is empty. Of each bucket only the time is kept at which it will be full.
export function admitAtRate(
  { perSecond, burst }: RateOptions,
  now: () => number = () => performance.now(),
): (caller: Caller) => void {
  const tokenMs = 1_000 / perSecond;
  let recent = new Map<string, number>();
  let before = new Map<string, number>();
  return ({ name }) => {
    const nowMs = now();
    const fullAt = Math.max(recent.get(name) ?? before.get(name) ?? 0, nowMs);
    const lackMs = fullAt + tokenMs - nowMs - burst * tokenMs;
    const isAdmitted = lackMs < roundingMs;
    recent.set(name, isAdmitted ? fullAt + tokenMs : fullAt);
    if (recent.size > remembered / 2) {
      before = recent;
      recent = new Map();
    }
    if (!isAdmitted) throw tooManyRequests(lackMs);
  };
}

const roundingMs = 0.001;

function tooManyRequests(waitMs: number): ApiError {
  const error = new ApiError("TOO_MANY_REQUESTS", "too many requests of this caller, try again", {
    "Retry-After": `${Math.ceil(waitMs / 1_000)}`,
  });
  return refusedBy("rate", error);
}
