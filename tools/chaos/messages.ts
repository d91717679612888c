// Messages that no relay has published: events that are in the stream already, in any order and in
// spite of its duplicate detection, and messages that are not events.
import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { headers as createHeaders, type MsgHdrs, type NatsConnection } from "nats";
import {
  EntitlementEventSchema,
  type EntitlementEventType,
} from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { connectTo } from "../servers/nats_client.ts";
import { Random } from "./random.ts";
import { pointsSubject, stream, subject } from "./replica_settings.ts";

/** `refused` is well formed, but too large for the database. */
const poisonKinds = ["garbage", "bad event_id", "unknown type", "huge", "refused"] as const;
export type PoisonKind = typeof poisonKinds[number];

export interface Poison {
  id: string;
  kind: PoisonKind;
  on: string; // its subject
  at: number;
  /** The stream has acknowledged it. */
  isStored: boolean;
}

interface Body {
  on: string; // its subject
  body: Uint8Array;
}

export const poisonUser = "poison-";
/** The header that names it. */
export const marker = "Kenri-Poison";
const remembered = 2_000;

export class Messages {
  readonly poison: Poison[] = [];
  sentAgain = 0;
  readonly #url: string;
  readonly #random: Random;
  #memory: Body[] = []; // survives the stream

  constructor(url: string, seed: number) {
    this.#url = url;
    this.#random = new Random(seed);
  }

  sendAgain(count: number, forMs: number): Promise<string | undefined> {
    return this.#connected(async (connection) => {
      await this.#remember(connection, count);
      const bodies = this.#random.shuffled(this.#memory).slice(0, count);
      for (const { on, body } of bodies) {
        if (await publish(connection, on, body)) this.sentAgain++;
        await pause(forMs / bodies.length);
      }
    });
  }

  sendPoison(count: number, forMs: number): Promise<string | undefined> {
    return this.#connected(async (connection) => {
      for (let i = 0; i < count; i++) {
        const kind = this.#random.pick(poisonKinds);
        const on = this.#random.pick([subject, pointsSubject]);
        const id = `${poisonUser}${this.poison.length + 1}`;
        const headers = createHeaders();
        headers.set(marker, id);
        const at = Date.now();
        const isStored = await publish(connection, on, bodyOf(kind, id), headers);
        this.poison.push({ id, kind, on, at, isStored });
        await pause(forMs / count);
      }
    });
  }

  /** Remembers some messages from anywhere in the stream. */
  async #remember(connection: NatsConnection, count: number): Promise<void> {
    const manager = await connection.jetstreamManager({ timeout: 2_000 });
    const { first_seq, last_seq, messages } = (await manager.streams.info(stream)).state;
    for (let i = 0; i < count && messages > 0; i++) {
      const seq = this.#random.int(Math.max(first_seq, last_seq - 5_000), last_seq);
      const message = await manager.streams.getMessage(stream, { seq });
      if (!message.header.has(marker)) {
        this.#memory.push({ on: message.subject, body: message.data });
      }
    }
    this.#memory = this.#memory.slice(-remembered);
  }

  async #connected(
    work: (connection: NatsConnection) => Promise<void>,
  ): Promise<string | undefined> {
    let connection: NatsConnection | undefined;
    try {
      connection = await connectTo(this.#url, {
        timeout: 2_000,
        waitOnFirstConnect: true,
        maxReconnectAttempts: 10,
        reconnectTimeWait: 500,
      });
      await work(connection);
      return undefined;
    } catch (error) {
      return `cut short: ${(error as Error).message}`; // another fault disturbs NATS
    } finally {
      await connection?.close();
    }
  }
}

/** A message that is not acknowledged may be in the stream or not; both are correct. */
async function publish(
  connection: NatsConnection,
  on: string,
  body: Uint8Array,
  headers?: MsgHdrs,
): Promise<boolean> {
  const sending = connection.jetstream().publish(on, body, {
    timeout: 1_000,
    ...(headers ? { headers } : {}),
  });
  return await sending.then(() => true, () => false);
}

function bodyOf(kind: PoisonKind, id: string): Uint8Array {
  const event = {
    eventId: kind === "bad event_id" ? "not-a-uuid" : crypto.randomUUID(),
    eventType: (kind === "unknown type" ? 77 : 1) as EntitlementEventType,
    occurredAt: timestampFromDate(new Date()),
    userId: kind === "refused" ? id + random(6_000).toHex() : id, // longer than an index takes
    stockKeepingUnit: "poison",
    version: 1n,
  };
  switch (kind) {
    case "garbage":
      return Uint8Array.of(0xff, ...random(100));
    case "huge":
      return new Uint8Array(900_000).fill(0xff);
    default:
      return toBinary(EntitlementEventSchema, create(EntitlementEventSchema, event));
  }
}

function random(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size));
}
