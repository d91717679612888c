// Decides which events of the stream `recover` may trust. Everyone who may publish to the subject
// can write anything into the stream, and NATS does not record who wrote a message.
import type { MsgHdrs } from "nats";
import { decodeEvent, type EventFields } from "@kenri/proto/entitlement/decode.ts";
import { isSealed, type SealedKind, sealHeader } from "@kenri/proto/entitlement/seal.ts";
import { decodePointsEvent, type PointsEventFields } from "@kenri/proto/points/decode.ts";
import { typeOfName as pointsTypes } from "@kenri/proto/points/event_types.ts";
import { UnreadableMessage } from "@kenri/proto/unreadable.ts";

export type Payload = EventFields | PointsEventFields;

export interface Candidate {
  payload: Payload;
  doubt: string | undefined; // why it can't be proven that the service published it
}

export const isOfPoints = (payload: Payload): payload is PointsEventFields =>
  pointsTypes.has(payload.event_type);

export interface StoredMessage {
  data: Uint8Array;
  headers?: MsgHdrs | undefined;
}

// Returns undefined for messages that the relay never writes.
export function examine(message: StoredMessage, keys: string[]): Candidate | undefined {
  const header = (name: string) => message.headers?.get(name) ?? "";
  const kind = pointsTypes.has(header("event_type")) ? "points event" : "event";
  const payload = readFields(message.data, kind);
  if (!payload || header("Nats-Msg-Id") !== payload.event_id) return undefined;
  if (header("event_type") !== payload.event_type) return undefined;
  return { payload, doubt: doubtOf(message.data, header(sealHeader), keys, kind) };
}

function readFields(data: Uint8Array, kind: SealedKind): Payload | undefined {
  try {
    return kind === "event" ? decodeEvent(data) : decodePointsEvent(data);
  } catch (error) {
    if (error instanceof UnreadableMessage) return undefined;
    throw error;
  }
}

function doubtOf(
  body: Uint8Array,
  seal: string,
  keys: string[],
  kind: SealedKind,
): string | undefined {
  if (keys.length === 0) return "ENTITLEMENT_SEAL_KEY is not set";
  if (seal === "") return "it has no seal";
  return isSealed(body, seal, keys, kind) ? undefined : "its seal was not made with the key";
}

// Users chose both texts, so they are quoted as JSON. `print` makes the line printable.
export function describe({ payload, doubt }: Candidate): string {
  const { event_id, event_type, user_id, version, occurred_at } = payload;
  const what = isOfPoints(payload)
    ? `${payload.point_amount} ${JSON.stringify(payload.unit)}`
    : JSON.stringify(payload.stock_keeping_unit);
  return `${event_id} ${occurred_at} ${event_type} ${JSON.stringify(user_id)} ${what} ` +
    `version ${version}: ${doubt ?? "a version before it is missing"}`;
}
