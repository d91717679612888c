import { ErrorReply } from "@redis/client";
import { reasonOf } from "../process/reason.ts";

// Redis is down, starting, full or too slow, or it does not let us in. The same call may succeed later.
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
  // The connection is of no use: nothing is answered, or a replica is at its other end, and the next
  // connection may lead to the server that takes changes.
  readonly endsConnection: boolean;

  constructor(
    message: string,
    { endsConnection = false, cause }: { endsConnection?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.endsConnection = endsConnection;
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
  if (!states.test(reason)) return undefined;
  return new RedisUnavailable(reason, {
    endsConnection: reason.startsWith("READONLY"),
    cause: error,
  });
}
