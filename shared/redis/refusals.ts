import { ErrorReply } from "@redis/client";
import { reasonOf } from "../process/reason.ts";
import { RedisUnavailable } from "./errors.ts";

// The first words of such answers.
const states =
  /^(LOADING|BUSY|READONLY|OOM|MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM|MAXCLIENTS|ERR max number of clients|ERR ACL failure in script)/;

// Undefined if the call itself was wrong.
export function refusalOf(error: unknown): RedisUnavailable | undefined {
  if (error instanceof RedisUnavailable) return error;
  const reason = reasonOf(error);
  if (!(error instanceof ErrorReply)) return new RedisUnavailable(reason, { cause: error });
  if (!states.test(reason)) return undefined;
  return new RedisUnavailable(reason, {
    endsConnection: reason.startsWith("READONLY"),
    cause: error,
  });
}
