// Decides which events of the stream `recover` may trust. Everyone who may publish to the subject
// can write anything into the stream, and NATS does not record who wrote a message.
import type { MsgHdrs } from "nats";
import { isSealed, sealHeader } from "@kenri/proto/entitlement/seal.ts";
import { decodeEvent, type EventFields } from "@kenri/proto/entitlement/decode.ts";
import { UnreadableMessage } from "@kenri/proto/unreadable.ts";

export interface Candidate {
  payload: EventFields;
  doubt: string | undefined; // why it can't be proven that the service published it
}

export interface StoredMessage {
  data: Uint8Array;
  headers?: MsgHdrs | undefined;
}

// Returns undefined for messages that the relay never writes.
export function examine(message: StoredMessage, keys: string[]): Candidate | undefined {
  const payload = readFields(message.data);
  const header = (name: string) => message.headers?.get(name) ?? "";
  if (!payload || header("Nats-Msg-Id") !== payload["event_id"]) return undefined;
  if (header("event_type") !== payload["event_type"]) return undefined;
  return { payload, doubt: doubtOf(message.data, header(sealHeader), keys) };
}

function readFields(data: Uint8Array): EventFields | undefined {
  try {
    return decodeEvent(data);
  } catch (error) {
    if (error instanceof UnreadableMessage) return undefined;
    throw error;
  }
}

function doubtOf(body: Uint8Array, seal: string, keys: string[]): string | undefined {
  if (keys.length === 0) return "ENTITLEMENT_SEAL_KEY is not set";
  if (seal === "") return "it has no seal";
  return isSealed(body, seal, keys) ? undefined : "its seal was not made with the key";
}

// Users chose both texts, so they are quoted as JSON. `print` makes the line printable.
export function describe({ payload, doubt }: Candidate): string {
  const { event_id, event_type, user_id, stock_keeping_unit, version, occurred_at } = payload;
  const who = `${JSON.stringify(user_id)} ${JSON.stringify(stock_keeping_unit)}`;
  return `${event_id} ${occurred_at} ${event_type} ${who} ` +
    `version ${version}: ${doubt ?? "a version before it is missing"}`;
}
