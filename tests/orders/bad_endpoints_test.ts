// Bad input of the endpoints gets a clear error in the usual form, and nothing of it is stored.
import assert from "node:assert/strict";
import { type Answer, assertError, call, command } from "../support/api.ts";
import { act, attemptsAt, change, listEndpoints, make } from "../support/endpoints.ts";
import { freshPlace, startNotification } from "../support/notification.ts";
import { createEndpoint, orderSettings, senderToken, startOrders } from "../support/orders.ts";
import type { FreshPlace } from "../support/places.ts";
import { ask } from "../../tools/servers/asking.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { plantedSecretKey } from "../../tools/planted.ts";
import { describedBy } from "../http/described.ts";

// With a sender as it is outside of tests: it sends to no address of this machine.
let stage: { url: string; place: FreshPlace; service: ServiceProcess; sender: ServiceProcess };
const running = new AsyncDisposableStack();
const url = "https://shop.example/hooks";
let id: string; // of an endpoint
Deno.test.beforeAll(async () => {
  const place = running.use(await freshPlace());
  const sender = running.use(await startService("sender", { SENDER_TOKEN: senderToken }));
  const service = running.use(await startNotification(place, orderSettings(sender)));
  stage = { url: service.url, place, service, sender };
  id = (await createEndpoint(stage, { url })).json.endpoint_id;
});
Deno.test.afterAll(() => running.disposeAsync());

const stored = () =>
  ask(
    stage.place.ownerUrl,
    `select (select json_agg(to_json(endpoints) order by endpoint_id) from endpoints) as endpoints,
       (select json_agg(to_json(endpoint_secrets)) from endpoint_secrets) as secrets,
       (select count(*)::int from idempotency_keys) as answers,
       (select count(*)::int from outbox_orders) as orders`,
  );

async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const before = await stored();
  await work();
  assert.deepEqual(await stored(), before);
  const { log } = stage.service;
  assert.deepEqual(log.filter(({ level }) => level === "error"), []);
}

/** Each value is refused at creation and by a change, with a message that names the field. */
function refuses(field: string, values: unknown[], code = "BAD_REQUEST"): Promise<void> {
  return leavesNoTrace(async () => {
    for (const value of values) {
      const refused = { create: await createEndpoint(stage, { url, [field]: value }) };
      // A change without the field, or with its default, is no mistake.
      const changed = value === undefined
        ? {}
        : { change: await change(stage, id, { [field]: value }) };
      for (const [what, answer] of Object.entries<Answer>({ ...refused, ...changed })) {
        const name = `${what} with ${field} ${JSON.stringify(value)}: ${answer.text}`;
        assert.equal(answer.status, 400, name);
        assertError(answer, 400, code);
        assert.match(answer.json.message, new RegExp(`^(The )?${field}\\b`), name);
        assert.doesNotMatch(answer.json.message, /NaN|undefined|expected|zod|Invalid/, name);
      }
    }
  });
}

Deno.test("a url is http or https, and has at most 2048 characters", async () => {
  await refuses("url", [
    ...[undefined, null, "", " ", 1, true, [], {}, [url], "shop.example", "//shop.example/a", "/a"],
    ...["https:", "https://", "https:///", "https://[::1", "https://%/", "https://a b.example/"],
    ...["ftp://shop.example/", "file:///etc/passwd", "javascript:alert(1)", "ws://shop.example/"],
    `https://shop.example/${"x".repeat(2_100)}`,
  ]);
});

Deno.test("plain http, user info and addresses that are not public are blocked in all their forms", async () => {
  await refuses("url", [
    ...["http://shop.example/", "HTTP://shop.example:80/"],
    ...[
      "https://ann@shop.example/",
      "https://ann:secret@shop.example/",
      "https://:x@shop.example/",
    ],
    ...["https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://100.64.0.1/"],
    ...["https://169.254.169.254/latest/", "https://0.0.0.0/", "https://224.0.0.1/"],
    ...["https://10.1/", "https://167772161/", "https://0x0a000001/", "https://012.0.0.1/"],
    ...["https://134744072/", "https://010.8.8.8/", "https://8.8.2056/"],
    ...["https://[::]/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://[::ffff:a00:1]/"],
    ...["https://[fe80::1]/", "https://[fc00::1]/", "https://[ff02::1]/", "https://[64:ff9b::1]/"],
    ...["https://shop.example:22/", "https://shop.example:0/", "https://shop.example:80/"],
    ...["https://127.0.0.1/", "https://8.8.8.8:22/", "https://[2606:4700::1111]:5432/"],
    ...["https://shop.example\\@10.0.0.1/", "https://１０.0.0.1/", "https://10。0。0。1/"],
  ], "ADDRESS_BLOCKED");
});

Deno.test("event_types are known names", async () => {
  await refuses("event_types", [
    ...["", "EntitlementGranted", {}, 1, [], [""], ["entitlementgranted"], ["Other"], [1], [null]],
    ...[["EntitlementGranted", "Other"], Array(101).fill("PointsAdded")],
  ]);
});

Deno.test("the other fields are of their kind", async () => {
  await refuses("ordering", ["", "KEY", "all", 1, [], {}, true]);
  await refuses("at_once", [0, -1, 1.5, 1_001, 1e9, "4", [], true]);
  const texts = ["", " ", "x".repeat(256), "a\u0000b", "a\nb", 1, true, [], {}];
  await refuses("description", texts);
  await refuses("user_id", texts);
});

Deno.test("an overlap is a duration of at most 30 days", async () => {
  await leavesNoTrace(async () => {
    const bad = ["", "1", "1w", "-1s", "31d", "721h", "1.5h", " 1h", "999999999d", 1, true, [], {}];
    for (const overlap of bad) {
      const refused = await act(stage, id, "rotate-secret", { overlap });
      const message = "overlap must be a duration of at most 30d such as 24h, or 0s";
      assertError(refused, 400, "BAD_REQUEST", message);
    }
  });
});

Deno.test("a body that is not a JSON object is refused", async () => {
  await leavesNoTrace(async () => {
    const create = (body: string, headers = {}) =>
      command(`${stage.url}/v1/endpoints`, body, undefined, headers);
    for (const body of ["", "{", "null", "1", "[]", '"x"', "{'url':1}"]) {
      for (const refused of [await create(body), await change(stage, id, body)]) {
        assertError(refused, 400, "BAD_REQUEST");
        assert.match(refused.json.message, /^request body is (required|invalid)$/);
      }
    }
    const long = JSON.stringify({ url, description: "x".repeat(20_000) });
    assertError(await create(long), 413, "PAYLOAD_TOO_LARGE");
    const xml = await create(JSON.stringify({ url }), { "Content-Type": "text/xml" });
    assertError(xml, 415, "UNSUPPORTED_MEDIA_TYPE");
  });
});

Deno.test("a bad key, limit, cursor or id is refused", async () => {
  await leavesNoTrace(async () => {
    for (const key of ["", " ", "a b", "é", "x".repeat(256)]) {
      const headers = { "Idempotency-Key": encodeURIComponent(key) === "%C3%A9" ? "\xe9" : key };
      const refused = [
        await command(`${stage.url}/v1/endpoints`, { url }, undefined, headers),
        await act(stage, id, "pause", {}, headers),
        await act(stage, id, "test", {}, headers),
        await act(stage, id, "rotate-secret", {}, headers),
      ];
      for (const answer of refused) assertError(answer, 400, "BAD_REQUEST");
    }
    for (const limit of ["0", "201", "-1", "1.5", "x", "1e9"]) {
      for (
        const refused of [
          await listEndpoints(stage, { limit }),
          await attemptsAt(stage, id, { limit }),
        ]
      ) {
        assertError(refused, 400, "BAD_REQUEST");
        assert.match(refused.json.message, /^limit /);
      }
    }
    for (
      const cursor of ["x", "", "null", btoa("[]"), btoa('["a","b"]'), btoa("[-1]"), btoa("[1e99]")]
    ) {
      const message = "cursor must be a next_cursor of this service";
      assertError(await listEndpoints(stage, { cursor }), 400, "BAD_REQUEST", message);
      assertError(await attemptsAt(stage, id, { cursor }), 400, "BAD_REQUEST", message);
    }
    for (const rest of ["", "/attempts"]) {
      assertError(await call(`${stage.url}/v1/endpoints/%ff${rest}`), 400, "BAD_REQUEST");
    }
  });
});

Deno.test("without a sender or a secret-key each route answers that the sender is not configured", async () => {
  const ofSender = {
    NOTIFICATION_SENDER_URL: stage.sender.url,
    NOTIFICATION_SENDER_TOKEN: "x".repeat(40),
  };
  for (const settings of [{ NOTIFICATION_ENDPOINTS_SECRET_KEY: plantedSecretKey }, ofSender]) {
    await using place = await freshPlace();
    await using service = await startNotification(place, settings);
    const { operations } = await describedBy(service.url);
    const ofEndpoints = operations.filter(({ path }) => path.startsWith("/v1/endpoints"));
    assert.equal(ofEndpoints.length, (await operationsOf(stage.url)).length);
    for (const { name, path, method } of ofEndpoints) {
      const answer = await call(service.url + path.replace("{endpoint_id}", id), {
        method: method.toUpperCase(),
      });
      assert.equal(answer.status, 503, name);
      assertError(answer, 503, "SENDER_NOT_CONFIGURED");
      assert.equal(answer.headers.get("Retry-After"), "60");
    }
  }
});

async function operationsOf(url: string): Promise<unknown[]> {
  const { operations } = await describedBy(url);
  return operations.filter(({ path }) => path.startsWith("/v1/endpoints"));
}

Deno.test("while the sender can't be reached new urls are accepted, and judged when something is sent", async () => {
  await using other = await startOrders();
  const { endpoint_id } = await make(other);
  await other.sender.stop();
  assert.equal((await createEndpoint(other, { url })).status, 201);
  assert.equal((await change(other, endpoint_id, { url })).status, 200);
  assert.equal((await change(other, endpoint_id, { description: "x" })).status, 200);
  assert.equal((await act(other, endpoint_id, "pause")).status, 200);
});
