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
