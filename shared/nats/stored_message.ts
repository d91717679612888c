import { type JetStreamManager, NatsError, type StoredMsg } from "nats";

const messageNotFound = 10037;
const streamNotFound = 10059;

// The message with this sequence; undefined if it or the stream no longer exists.
export async function storedMessage(
  manager: JetStreamManager,
  stream: string,
  sequence: number,
): Promise<StoredMsg | undefined> {
  try {
    return await manager.streams.getMessage(stream, { seq: sequence });
  } catch (error) {
    const code = error instanceof NatsError ? error.api_error?.err_code : undefined;
    if (code === messageNotFound || code === streamNotFound) return undefined;
    throw error;
  }
}
