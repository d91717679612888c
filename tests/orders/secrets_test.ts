// Secrets of endpoints, the token of the sender, the key of the secrets and payloads are nowhere but where
// they are needed: not in logs, errors, traces, metrics, pages or tables.
import assert from "node:assert/strict";
import { plantedKey, plantedPayload, plantedSecretKey } from "../../tools/planted.ts";
import { until } from "../../tools/servers/wait.ts";
import { call } from "../support/api.ts";
import { act, make } from "../support/endpoints.ts";
import { eventOf, messageOf } from "../support/events.ts";
import { countLogged } from "../support/logs.ts";
import { publishRaw } from "../support/notification.ts";
import {
  createEndpoint,
  give,
  orderRows,
  type Orders,
  senderToken,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { inMs } from "../support/points.ts";
import { describedBy } from "../http/described.ts";

// Urls of receivers often contain a credential.
const inUrl = "planted-in-url";

/** The columns of all tables that contain the text, as it is or as bytes. */
async function columnsWith(stage: Orders, text: string): Promise<string[]> {
  const columns = await stage.rows<{ table_name: string; column_name: string }>(
    `select table_name, column_name
     from information_schema.columns
     join information_schema.tables using (table_schema, table_name)
     where table_schema = 'public' and table_type = 'BASE TABLE'
     order by table_name, ordinal_position`,
  );
  const found: string[] = [];
  for (const { table_name: table, column_name: column } of columns) {
    const rows = await stage.rows(
      `select from ${table}
       where position($1 in ${column}::text) > 0
         or position(encode(convert_to($1, 'UTF8'), 'hex') in ${column}::text) > 0
       limit 1`,
      [text],
    );
    if (rows.length > 0) found.push(`${table}.${column}`);
  }
  return found;
}

/** Webhooks and orders that succeed, fail, expire and are blocked, a rotation, and a sender that goes away. */
async function useEverything(stage: Orders): Promise<string[]> {
  const { receiver } = stage;
  const first = await make(stage, { url: `${receiver.url}/hooks?token=${inUrl}` });
  const rotated = await act(stage, first.endpoint_id, "rotate-secret", { overlap: "1h" });
  assert.equal(rotated.status, 200, rotated.text);
  await act(stage, first.endpoint_id, "test");
  await publishRaw(stage.place, [messageOf(eventOf())]);
  const behaviours = [200, 302, 404, 500, "close", "broken head", "hang"] as const;
  for (const [i, behaviour] of behaviours.entries()) {
    receiver.behaveAt(`/${i}?token=${inUrl}`, behaviour);
    await give(stage, { url: `${receiver.url}/${i}?token=${inUrl}` });
  }
  await give(stage, { url: `http://localhost:1/?token=${inUrl}` });
  await give(stage, { url: `http://no-such-name.invalid/?token=${inUrl}` });
  await give(stage, { endpoint_id: first.endpoint_id, expires_at: inMs(3_600_000) });
  await untilAllAre(stage, ["SUCCEEDED", "ABORTED"]);
  await stage.sender.kill();
  await stage.rows(
    "update outbox_orders set status = 'PENDING', next_run_at = now(), finished_at = null",
  );
  await stage.rows("truncate idempo_ledger");
  await until("it is away", () => countLogged(stage.service.log, /The sender is unavailable/) > 0);
  return [first.secret, rotated.json.secret];
}

Deno.test("secrets and payloads are in no log, metric, page or table but the one that needs them", async () => {
  await using stage = await startOrders({
    NOTIFICATION_ORDERS_MAX_ATTEMPTS: "2",
    NOTIFICATION_ORDERS_SEND_TIMEOUT: "500ms",
  });
  const secrets = await useEverything(stage);
  const never = [...secrets, senderToken, plantedSecretKey];
  for (const secret of never) assert.deepEqual(await columnsWith(stage, secret), []);
  const keys = secrets.map((secret) => atob(secret.replace("whsec_", "")));
  for (const key of keys) {
    const bytes = Uint8Array.from(key, (one) => one.charCodeAt(0)).toHex();
    const [row] = await stage.rows(
      "select from endpoint_secrets where position($1 in encode(ciphertext, 'hex')) > 0",
      [bytes],
    );
    assert.equal(row, undefined, "secrets are encrypted");
  }
  assert.deepEqual(
    await columnsWith(stage, plantedPayload),
    ["outbox_orders.order_request_json"],
  );

  const logs = JSON.stringify([stage.service.log, stage.sender.log]);
  for (const text of [...never, plantedPayload, plantedKey, inUrl]) {
    assert.ok(!logs.includes(text), `the log contains ${text.slice(0, 16)}`);
  }
  for (const row of await orderRows(stage)) {
    assert.doesNotMatch(row.last_error_msg ?? "", new RegExp(`${plantedPayload}|${inUrl}`));
  }
});

Deno.test("no page and no look of operators contains a secret", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_MAX_ATTEMPTS: "1" });
  const { secret, endpoint_id } = await make(stage, { url: `${stage.receiver.url}/hooks` });
  stage.receiver.behave(500);
  const order_id = await give(stage, { endpoint_id });
  await stage.receiver.until(1);
  stage.receiver.behave(404);
  const plain = await give(stage, { url: stage.receiver.url });
  await stage.receiver.until(2);
  const { operations } = await describedBy(stage.url);
  const looks = operations.filter(({ method }) => method === "get").map(({ path }) => path);
  const query = new URLSearchParams({ order_id, endpoint_id, id: order_id, layer: "order" });
  const pages = ["", "/orders", "/endpoints", "/dead-letters?layer=order", `/orders/${plain}`];
  const paths = [
    ...looks.map((path) =>
      path.replace("{order_id}", order_id).replace("{endpoint_id}", endpoint_id)
    ),
    ...looks.map((path) => `${path}?${query}`),
    ...pages.map((page) => `/console/notification${page}`),
  ];
  let asked = 0;
  for (const path of paths) {
    const { status, text } = await call(stage.url + path, {
      headers: { Accept: "text/html, */*" },
    });
    if (status === 200) asked++;
    for (const one of [secret, senderToken, plantedSecretKey]) {
      assert.ok(!text.includes(one), path);
    }
  }
  assert.ok(asked > 10, `${asked} answers`);
});

Deno.test("without the key of its secret an endpoint gets nothing, and no attempt is used up", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  const { json: { endpoint_id } } = await createEndpoint(stage, { url: stage.receiver.url });
  await give(stage, { endpoint_id });
  const other = new Uint8Array(32).fill(1).toBase64({ alphabet: "base64url", omitPadding: true });
  const withOther = {
    NOTIFICATION_ORDERS_ENABLED: "true",
    NOTIFICATION_ENDPOINTS_SECRET_KEY: other,
  };
  {
    await using replica = await stage.replica(withOther);
    await until("it is logged", () => countLogged(replica.log, /decrypts its secret/) > 0);
    await untilAllAre(stage, ["PENDING"]);
  }
  assert.deepEqual(await stage.rows("select attempts, last_error_code from outbox_orders"), [
    { attempts: 0, last_error_code: null },
  ]);
  assert.equal(stage.receiver.connections, 0);
});
