// What was in a server when it was wiped. Copies of its files are read by another server: only what they
// hold may be missing at the end of the run.
import { plantedPassword } from "../planted.ts";
import { startNats } from "../servers/nats.ts";
import type { NatsServer } from "../servers/nats.ts";
import { connectTo } from "../servers/nats_client.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import {
  type MatchStore,
  readMatchEvents,
  readMatchStore,
  type StoredMatchEvent,
} from "./invariants/match_tables.ts";
import { matchDurable, matchStream } from "./replica_settings.ts";

export interface WipedStream {
  at: number; // in milliseconds since 1970
  events: StoredMatchEvent[];
  /** The consumer had acknowledged all up to this sequence, and maybe more. */
  received: number;
}

export interface WipedStore extends MatchStore {
  at: number;
}

/** Both servers must be killed when they are wiped. */
export class Wipes {
  readonly streams: WipedStream[] = [];
  readonly stores: WipedStore[] = [];

  async wipeNats(server: NatsServer): Promise<void> {
    const at = Date.now();
    await using copy = await copyOf(server.storeDir, `jetstream/$G/streams/${matchStream}`);
    if (copy.isEmpty) this.streams.push({ at, events: [], received: 0 });
    else {
      await using reader = await startNats({ storeDir: copy.path, password: plantedPassword });
      const events = await readMatchEvents(reader.url, matchStream);
      this.streams.push({ at, events, received: await receivedFrom(reader.url) });
    }
    await server.wipe();
  }

  async wipeRedis(server: RedisServer): Promise<void> {
    const at = Date.now();
    await using copy = await copyOf(server.dataDir, "");
    await using reader = await startRedis({ dataDir: copy.path, password: plantedPassword });
    this.stores.push({ at, ...await readMatchStore(reader.url) });
    await server.wipe();
  }
}

async function receivedFrom(url: string): Promise<number> {
  const connection = await connectTo(url, { reconnect: false });
  try {
    const { consumers } = await connection.jetstreamManager();
    const info = await consumers.info(matchStream, matchDurable).catch(() => undefined);
    return info?.ack_floor.stream_seq ?? 0;
  } finally {
    await connection.close();
  }
}

interface Copy extends AsyncDisposable {
  path: string;
  isEmpty: boolean;
}

async function copyOf(folder: string, part: string): Promise<Copy> {
  const path = await Deno.makeTempDir({ prefix: "kenri-chaos-wiped-" });
  const from = `${folder}/${part}`;
  const isEmpty = await Deno.stat(from).then(() => false, () => true);
  if (!isEmpty) {
    const script = 'mkdir -p "$1" && cp -r "$0/." "$1"';
    const args = ["-c", script, from, `${path}/${part}`];
    const { success } = await new Deno.Command("sh", { args }).output();
    if (!success) throw new Error(`${from} can't be copied`);
  }
  return { path, isEmpty, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
