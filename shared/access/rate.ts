import { z } from "zod";
import { count, number } from "../process/setting_kinds.ts";
import { ApiError } from "../http/errors.ts";
import { refusedBy } from "../http/limits.ts";
import type { Caller } from "./caller.ts";
import type { Authenticator } from "./authenticator.ts";

// Limits how many requests a caller may send: each caller has a bucket of tokens, a request takes
// one, and the bucket is refilled at a constant rate.

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
  burst: number; // the size of the bucket
}

export const burstNeedsRate = z.refine<Record<string, unknown>>(
  (settings) => settings["access.burst"] === undefined || settings["access.rate"] !== undefined,
  { path: ["access.burst"], message: "also needs ACCESS_RATE: without a rate there is no limit" },
);

// Without a rate there is no limit. Without a burst the bucket holds the tokens of one second.
export function rateOf(
  settings: z.output<z.ZodObject<typeof rateSettings>>,
): RateOptions | undefined {
  const perSecond = settings["access.rate"];
  if (perSecond === undefined) return undefined;
  return { perSecond, burst: settings["access.burst"] ?? Math.max(1, Math.ceil(perSecond)) };
}

// Counts each successful authentication. So requests that need none, such as health checks, are not
// counted, and neither are the console's calls to its own service.
export function rateLimited(
  authenticator: Authenticator,
  rate: RateOptions | undefined,
): Authenticator {
  if (!rate) return authenticator;
  const admit = admitAtRate(rate);
  const counted = (caller: Caller) => {
    admit(caller.name);
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
        admit(begun.caller.name);
        return begun;
      },
      resume: async (session, cookie) => counted(await sessions.resume(session, cookie)),
    },
  };
}

// There is no limit to the number of callers, such as those that an issuer names. A caller is forgotten,
// and gets a full bucket, after so many others have sent requests since its last one.
const maxRemembered = 10_000;

// Throws when the bucket of the name is empty. A bucket is stored as the time at which it will be full.
export function admitAtRate(
  { perSecond, burst }: RateOptions,
  tooMany = "this caller sent too many requests",
  now: () => number = () => performance.now(),
): (name: string) => void {
  const tokenMs = 1_000 / perSecond;
  let recent = new Map<string, number>();
  let before = new Map<string, number>();
  return (name) => {
    const nowMs = now();
    const fullAt = Math.max(recent.get(name) ?? before.get(name) ?? 0, nowMs);
    const lackMs = fullAt + tokenMs - nowMs - burst * tokenMs;
    const isAdmitted = lackMs < roundingMs;
    recent.set(name, isAdmitted ? fullAt + tokenMs : fullAt);
    if (recent.size > maxRemembered / 2) {
      before = recent;
      recent = new Map();
    }
    if (!isAdmitted) throw tooManyRequests(tooMany, lackMs);
  };
}

const roundingMs = 0.001;

function tooManyRequests(tooMany: string, waitMs: number): ApiError {
  const error = new ApiError("TOO_MANY_REQUESTS", `${tooMany}, try again later`, {
    "Retry-After": `${Math.ceil(waitMs / 1_000)}`,
  });
  return refusedBy("rate", error);
}
