// A notification service that sends orders, a real sender, and a receiver with one endpoint. Nothing is
// received from the stream, so all that happens is about orders.
import assert from "node:assert/strict";
import { encryptSecret, newSecret } from "../../../notification/endpoints/secrets.ts";
import { acceptCommand } from "../../../notification/orders/accept_order.ts";
import { commit } from "../../../shared/commands/command.ts";
import { openDatabase } from "../../../shared/postgres/postgres.ts";
import { durable } from "../../../tools/load/stage.ts";
import { plantedSecretKey } from "../../../tools/planted.ts";
import { ask } from "../../../tools/servers/asking.ts";
import { type Settings, startService } from "../../../tools/servers/service_process.ts";
import { runArguments } from "../../../tools/services.ts";
import { freshPlace, settingsOf } from "../../support/notification.ts";
import { orderSettings, senderSettings } from "../../support/orders.ts";
import type { FreshPlace } from "../../support/places.ts";
import { type Received, type Receiver, startReceiver, verified } from "../../support/receiver.ts";
import { observe } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

type Service = "notification";
export type OrderPoint = CrashPoint<Service, OrderStage>;

export interface OrderStage extends System<Service> {
  receiver: Receiver;
  /** Whether the receiver accepts what it gets. */
  accepts(isUp: boolean): void;
  /** Accepts orders for the endpoint, as a replica does that sends none. */
  give(count?: number): Promise<void>;
  /** Changes rows as the owner of the database. */
  change(statement: string): Promise<void>;
}

const endpointId = "00000000-0000-4000-9000-0000000000ee";

// Of an endpoint only what is unusual.
const counts = `
  select 'orders ' || status as what, count(*)::int from outbox_orders group by status
  union all
  select 'order attempts', coalesce(sum(attempts), 0)::int from outbox_orders
  union all
  select 'ledger ' || status, count(*)::int from idempo_ledger group by status
  union all
  select 'endpoint ' || state || case when is_draining then ', draining' else '' end, 1
  from endpoints
  where state <> 'ACTIVE' or is_draining`;

export async function openOrders(): Promise<OrderStage> {
  await using opened = new AsyncDisposableStack();
  const receiver = opened.use(await startReceiver());
  const sender = opened.use(await startService("sender", senderSettings));
  const place = opened.use(await freshPlace());
  const secret = newSecret();
  await addEndpoint(place, receiver, secret);
  const { ownerUrl, natsUrl, stream } = place;
  const databases = { notification: { ownerUrl, counts } };
  const observer = opened.use(await observe({ databases, natsUrl, stream, durable }));
  const closing = opened.move();
  const accepted: Received[] = [];
  const accepts = (isUp: boolean) =>
    receiver.behave((request) => {
      if (isUp) accepted.push(request);
      return isUp ? 200 : 503;
    });
  accepts(true);
  let given = 0;
  return {
    settings: {
      ...settingsOf(place),
      ...orderSettings(sender),
      NOTIFICATION_ORDERS_POLL_INTERVAL: "50ms",
      NOTIFICATION_ENDPOINTS_PROBE_MIN: "100ms",
    },
    shortLeases: { NOTIFICATION_ORDERS_LEASE: "1s" },
    owners: { notification: ownerUrl },
    observer,
    receiver,
    accepts,
    start,
    goOn: (_, settings) => start("notification", settings),
    give: async (count = 1) => {
      const orders = Array.from({ length: count }, () => orderNamed(`order-${++given}`));
      const database = openDatabase(place.serviceUrl, "replica");
      try {
        const { result } = await commit(database, acceptCommand(), orders);
        assert.deepEqual(new Set(result.map(({ status }) => status)), new Set([202]));
      } finally {
        await database.end();
      }
    },
    change: (statement) => ask(ownerUrl, statement).then(() => {}),
    assertHolds: async ({ sends }) => {
      assert.equal(accepted.length, sends);
      for (const request of accepted) verified(request, secret);
      assertSameEachTime(accepted);
      await assertLedgerIsTrue(ownerUrl, accepted);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const start: System<Service>["start"] = (service, settings: Settings, change = (args) => args) =>
  startService(service, settings, {
    arguments: (name, read) => change(runArguments(name, read)),
  });

const keys = [Uint8Array.fromBase64(plantedSecretKey, { alphabet: "base64url" })];

async function addEndpoint(
  { ownerUrl }: FreshPlace,
  { url }: Receiver,
  secret: string,
): Promise<void> {
  await ask(
    ownerUrl,
    `with endpoint as (
       insert into endpoints (endpoint_id, caller, url, ordering, at_once)
       values ($1, '', $2, 'endpoint', 4)
     )
     insert into endpoint_secrets (endpoint_id, ciphertext) values ($1, $3)`,
    [endpointId, `${url}/hook`, encryptSecret(keys, endpointId, secret)],
  );
}

function orderNamed(idempotencyKey: string) {
  const request = JSON.stringify({ adapter: "http", endpoint_id: endpointId, payload: {} });
  return {
    ...{ url: null, endpointId, request, digest: request, expiresAt: null },
    ...{ caller: "", idempotencyKey, traceId: "t", traceparent: null },
  };
}

function assertSameEachTime(accepted: Received[]): void {
  for (const sends of Map.groupBy(accepted, idOf).values()) {
    assert.equal(new Set(sends.map(({ body }) => body)).size, 1);
  }
}

const idOf = ({ headers }: Received): string => headers.get("webhook-id") ?? "";

/** Every order has ended, as the ledger says; what SUCCEEDED was accepted, and nothing is leased. */
async function assertLedgerIsTrue(ownerUrl: string, accepted: Received[]): Promise<void> {
  const wrong = await ask(
    ownerUrl,
    `select orders.id, orders.status, ledger.status as ledger, orders.locked_by
     from outbox_orders orders
     full join idempo_ledger ledger using (idempotency_key)
     where claim_token is not null
       or ledger.order_id is distinct from orders.id
       or (orders.status, ledger.status) not in
         (('SUCCEEDED', 'SUCCEEDED'), ('ABORTED', 'FAILED'))
       or (orders.status = 'SUCCEEDED') <> (orders.id::text = any($1))`,
    [accepted.map(idOf)],
  );
  assert.deepEqual(wrong, []);
}
