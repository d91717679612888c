import { ErrorReply } from "@redis/client";
import { reasonOf } from "../process/reason.ts";

// Redis is down, starting, full or too slow, or it does not let us in. The same call may succeed later.
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
  // It did not answer at all, so the connection is of no use.
  readonly isSilent: boolean;

  constructor(
    message: string,
    { isSilent = false, cause }: { isSilent?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.isSilent = isSilent;
  }
}

// The first words of such answers.
const states =
  /^(LOADING|BUSY|READONLY|OOM|MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM|MAXCLIENTS|ERR max number of clients|ERR ACL failure in script)/;

// Undefined if the call itself was wrong.
export function refusalOf(error: unknown): RedisUnavailable | undefined {
  if (error instanceof RedisUnavailable) return error;
  const reason = reasonOf(error);
  if (!(error instanceof ErrorReply)) return new RedisUnavailable(reason, { cause: error });
  return states.test(reason) ? new RedisUnavailable(reason, { cause: error }) : undefined;
}
