// Webhooks in the process of the test: replicas that send orders and look after endpoints, each with
// a pool of its own, and the world that they send to.
import { keepEndpoints, type KeepParts } from "../../notification/endpoints/keep_endpoints.ts";
import { encryptSecret, newSecret } from "../../notification/endpoints/secrets.ts";
import { readNotification } from "../../notification/notification.ts";
import { sendOrders } from "../../notification/orders/send_orders.ts";
import type { EndpointOptions, OrdersConfig } from "../../notification/orders/settings.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { freshDatabase, type TestDatabase } from "./databases.ts";
import { bodyOf, type Event, eventsOf } from "./events.ts";
import { collectingLog } from "./relays.ts";
import { World } from "./world.ts";

const secretKeys = [new Uint8Array(32).fill(7)];

export const quickEndpoints: EndpointOptions = {
  atOnce: 4,
  failuresToPark: 5,
  probeMinMs: 50,
  probeMaxMs: 400,
  disableAfterMs: 3_600_000,
  keepMs: 3_600_000,
  secretKeys,
  maxPerCaller: 50,
};

const send = { maxAttempts: 10, backoff: { delaysMs: [50] }, sendTimeoutMs: 5_000 };

export const quickOrders: OrdersConfig["orders"] = {
  enabled: true,
  worker: "test",
  batchSize: 32,
  pollIntervalMs: 50,
  leaseMs: 30_000,
  plain: send,
  webhooks: send,
  ledgerTtlMs: 3_600_000,
};

export interface Endpoint extends Record<string, unknown> {
  state: string;
  is_draining: boolean;
  failures: number;
  probes: number;
  probe_order_id: string | null;
  probe_in_ms: number | null;
}

export interface Order extends Record<string, unknown> {
  id: string;
  event_id: string;
  endpoint_id: string;
  status: string;
  attempts: number;
  last_error_code: string | null;
}

export interface Webhooks extends TestDatabase {
  database: Database;
  world: World;
  endpoint(host: string, fields?: Record<string, unknown>): Promise<string>; // returns its id
  stateOf(endpointId: string): Promise<Endpoint | undefined>;
  set(endpointId: string, fields: Record<string, unknown>): Promise<void>;
  pause(endpointId: string): Promise<void>;
  resume(endpointId: string): Promise<void>;
  receive(events: Event[]): Promise<void>;
  orders(where?: string): Promise<Order[]>;
  counts(): Promise<Record<string, number>>; // of orders, by status
  query<Row>(statement: string, values?: unknown[]): Promise<Row[]>; // as the owner
}

export async function freshWebhooks(): Promise<Webhooks> {
  const fresh = await freshDatabase("notification");
  const database = openDatabase(fresh.serviceUrl, "webhooks");
  const rows = <Row>(statement: string, values: unknown[] = []) =>
    ask<Row & Record<string, unknown>>(fresh.ownerUrl, statement, values) as Promise<Row[]>;
  const set = async (id: string, fields: Record<string, unknown>) => {
    const names = Object.keys(fields);
    await rows(
      `update endpoints set ${names.map((name, i) => `${name} = $${i + 2}`).join(", ")}
       where endpoint_id = $1`,
      [id, ...Object.values(fields)],
    );
  };
  return {
    ...fresh,
    database,
    world: new World(),
    query: rows,
    set,
    endpoint: (host, fields = {}) => createEndpoint(fresh.ownerUrl, host, fields),
    stateOf: async (id) => {
      const [found] = await rows<Endpoint>(
        `select state, is_draining, failures, probes, probe_order_id,
           extract(epoch from next_probe_at - now())::float8 * 1000 as probe_in_ms
         from endpoints where endpoint_id = $1`,
        [id],
      );
      return found;
    },
    pause: (id) => set(id, { state: "PAUSED" }),
    resume: (id) => set(id, { ...wellAgain, state: "ACTIVE", is_draining: true }),
    receive: async (events) => {
      const received = events.map((event) => readNotification(bodyOf(event)));
      await receiveEvents(database, received, { predecessorWaitMs: 3_600_000 });
    },
    orders: (where = "true") =>
      rows(
        `select id, event_id, endpoint_id, status, attempts, last_error_code
         from outbox_orders where ${where} order by endpoint_id, position`,
      ),
    counts: async () => {
      const found = await rows<{ status: string; count: number }>(
        "select status, count(*)::int as count from outbox_orders group by status",
      );
      return Object.fromEntries(found.map(({ status, count }) => [status, count]));
    },
    [Symbol.asyncDispose]: async () => {
      await database.end();
      await fresh.drop();
    },
  };
}

const wellAgain = {
  failures: 0,
  failing_since: null,
  probes: 0,
  next_probe_at: null,
  probe_order_id: null,
};

async function createEndpoint(
  ownerUrl: string,
  host: string,
  fields: Record<string, unknown>,
): Promise<string> {
  const id = crypto.randomUUID();
  const given = { ordering: "key", at_once: 4, ...fields };
  const names = Object.keys(given);
  await withClient(ownerUrl, async (owner) => {
    await owner.query(
      `insert into endpoints (endpoint_id, caller, url, ${names.join(", ")})
       values ($1, '', $2, ${names.map((_, i) => `$${i + 3}`).join(", ")})`,
      [id, `https://${host}/hook`, ...Object.values(given)],
    );
    await owner.query(
      "insert into endpoint_secrets (endpoint_id, ciphertext) values ($1, $2)",
      [id, encryptSecret(secretKeys, id, newSecret())],
    );
  });
  return id;
}

export interface Replica extends AsyncDisposable {
  log: string[];
  look(): void; // at the endpoints
  stop(): Promise<void>;
}

export interface Parts {
  sends?: boolean;
  keeps?: boolean;
  orders?: Partial<OrdersConfig["orders"]>;
  endpoints?: Partial<EndpointOptions>;
}

/** A replica as main.ts starts it. */
export function startReplica(
  { serviceUrl, world }: Webhooks,
  { sends = true, keeps = true, orders, endpoints }: Parts = {},
): Replica {
  const database = openDatabase(serviceUrl, "replica");
  const { log, lines } = collectingLog();
  const [stopping, abandon] = [new AbortController(), new AbortController()];
  const config = {
    orders: { ...quickOrders, ...orders },
    endpoints: { ...quickEndpoints, ...endpoints },
    sender: undefined,
  };
  const wake = new Wakeup();
  const sending = {
    database,
    sender: world.sender,
    toSend: new Handover<never>(),
    wakeEndpoints: () => wake.trigger(),
    log,
    abandon: abandon.signal,
  };
  const keeping: KeepParts = { database, wakeOrders: sending.toSend.wake, wake, log };
  const loops = [
    ...sends ? [sendOrders(sending, config, stopping.signal)] : [],
    ...keeps ? [keepEndpoints(keeping, config.endpoints, stopping.signal)] : [],
  ];
  let stopped: Promise<void> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      stopping.abort();
      const grace = setTimeout(() => abandon.abort(), 500);
      await Promise.all(loops);
      clearTimeout(grace);
      await database.end();
    })();
  return { log: lines, look: () => wake.trigger(), stop, [Symbol.asyncDispose]: stop };
}

/** Events of versions 1 to `versions` of each user, received in batches. */
export async function receiveMany(
  webhooks: Webhooks,
  given: { users: number; versions: number },
): Promise<Event[]> {
  const events = eventsOf(given);
  for (let i = 0; i < events.length; i += 500) await webhooks.receive(events.slice(i, i + 500));
  return events;
}
