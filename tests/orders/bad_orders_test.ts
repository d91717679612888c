// What is refused when an order is accepted: one error shape, a message that names the field, and nothing
// stored.
import assert from "node:assert/strict";
import { assertError, call, command } from "../support/api.ts";
import { freshPlace, startNotification } from "../support/notification.ts";
import {
  findOrder,
  getOrder,
  give,
  ledger,
  order,
  orderRows,
  type Orders,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { inMs, newKey } from "../support/points.ts";

let stage: Orders;
let url: string; // of the receiver
Deno.test.beforeAll(async () => {
  stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  url = stage.receiver.url;
});
Deno.test.afterAll(() => stage.close());

async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const stored = async () => (await orderRows(stage)).length;
  const before = await stored();
  await work();
  assert.equal(await stored(), before);
  const errors = stage.service.log.filter(({ level }) => level === "error");
  assert.deepEqual(errors, []);
}

/** Each value is refused with a message that names the field. */
function refuses(field: string, values: unknown[], code = "BAD_REQUEST"): Promise<void> {
  return leavesNoTrace(async () => {
    for (const value of values) {
      const refused = await order(stage, { url, [field]: value });
      const what = `${field} ${JSON.stringify(value)}: ${refused.text}`;
      assert.equal(refused.status, 400, what);
      assertError(refused, 400, code);
      if (code === "BAD_REQUEST") assert.match(refused.json.message, new RegExp(`^${field} \\w`));
      assert.doesNotMatch(refused.json.message, /NaN|undefined|expected|zod|Invalid/, what);
    }
  });
}

Deno.test("the adapter is http", async () => {
  await refuses("adapter", [undefined, null, "", "HTTP", "webhook", "fax", 1, true, [], ["http"]]);
});

Deno.test("a url has http or https and a host", async () => {
  await refuses("url", [
    ...[null, "", " ", "x", 1, true, [], {}, [url], "//host/a", "/a", "host.example/a"],
    ...["http://", "https://", "https://a b.example/", "https://[::1", "https://%/"],
    ...[
      "ftp://a.example/",
      "file:///etc/passwd",
      "javascript:alert(1)",
      "data:,x",
      "ws://a.example/",
    ],
    `https://a.example/${"x".repeat(3_000)}`,
  ]);
});

// For a sender with its defaults.
const blocked = {
  "user info": [
    ...["https://ann@a.example/", "https://ann:secret@a.example/", "https://:secret@a.example/"],
    "https://a.example:secret@10.0.0.1/",
  ],
  "no encryption": ["http://a.example/", "http://93.184.215.14/"],
  "odd ports": ["https://a.example:22/", "https://a.example:0/", "https://93.184.215.14:5432/"],
  "addresses that are not public": [
    ...["https://127.0.0.1/", "https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/"],
    ...[
      "https://169.254.169.254/",
      "https://100.64.0.1/",
      "https://0.0.0.0/",
      "https://224.0.0.1/",
    ],
    ...["https://255.255.255.255/", "https://[::]/", "https://[::1]/", "https://[fe80::1]/"],
    ...["https://[fc00::1]/", "https://[ff02::1]/", "https://[::ffff:10.0.0.1]/"],
    "https://[64:ff9b::a00:1]/",
  ],
  "odd forms of addresses": [
    ...["https://0x0a000001/", "https://167772161/", "https://012.0.0.1/", "https://10.1/"],
    ...[
      "https://２130706433/",
      "https:///10.0.0.1/",
      "https:10.0.0.1",
      "https://10.0.0.1\\@a.example/",
    ],
    "https://10。0。0。1/",
  ],
};

for (const [what, urls] of Object.entries(blocked)) {
  Deno.test(`${what}: refused at the acceptance`, async () => {
    await using strict = await startOrders(
      { NOTIFICATION_ORDERS_ENABLED: "false" },
      { SENDER_ALLOW_ADDRESSES: undefined, SENDER_PLAIN_HTTP: undefined },
    );
    const accepted: string[] = [];
    for (const url of urls) {
      const refused = await order(strict, { url });
      if (refused.status === 202) accepted.push(url);
      else {
        const isUrl = refused.json.code !== "BAD_REQUEST";
        assertError(refused, 400, isUrl ? "ADDRESS_BLOCKED" : "BAD_REQUEST");
      }
      assert.doesNotMatch(refused.text, /secret|ann/, "a message repeats no user info");
    }
    assert.deepEqual(accepted, []);
    assert.deepEqual(await orderRows(strict), []);
  });
}

Deno.test("there is either a url or an endpoint_id", async () => {
  await leavesNoTrace(async () => {
    for (const fields of [{}, { url, endpoint_id: crypto.randomUUID() }]) {
      const refused = await order(stage, fields);
      assertError(refused, 400, "BAD_REQUEST");
      assert.match(refused.json.message, /url|endpoint_id/);
    }
  });
});

Deno.test("an endpoint_id is the id of an own endpoint", async () => {
  await leavesNoTrace(async () => {
    for (const endpoint_id of ["", "ann", 1, {}, "0".repeat(36), `${crypto.randomUUID()} `]) {
      assertError(await order(stage, { endpoint_id }), 400, "BAD_REQUEST");
    }
    assertError(await order(stage, { endpoint_id: crypto.randomUUID() }), 404, "NOT_FOUND");
  });
});

Deno.test("a time needs an offset, must exist, and must not have passed", async () => {
  await refuses("expires_at", [
    ...[inMs(-1_000), inMs(-86_400_000), "2020-01-02T03:04:05Z", "0000-01-01T00:00:00Z"],
    ...["2027-02-29T00:00:00Z", "2028-01-02", "2028-01-02T03:04:05", "tomorrow", "", 17, true, []],
    ...["2028-01-02T03:04:05+99:99", "infinity", `2028-01-02T03:04:05.${"1".repeat(5_000)}Z`],
    ...["10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z"],
  ]);
});

Deno.test("a payload is required, and any JSON is one", async () => {
  await leavesNoTrace(async () => {
    const refused = await order(stage, { url, payload: undefined });
    assertError(refused, 400, "BAD_REQUEST");
    assert.match(refused.json.message, /^payload /);
  });
  for (const payload of [null, 0, false, "", [], {}, { "__proto__": 1 }]) {
    const { status, text } = await order(stage, { url, payload });
    assert.equal(status, 202, `${JSON.stringify(payload)}: ${text}`);
  }
});

Deno.test("a body over 16 KiB, not JSON or of another type is refused in the one error shape", async () => {
  await leavesNoTrace(async () => {
    assertError(await order(stage, { url, payload: "x".repeat(16_384) }), 413, "PAYLOAD_TOO_LARGE");
    assertError(await order(stage, ""), 400, "BAD_REQUEST", "request body is required");
    for (const body of ["null", "[]", '"text"', "1", "{", "true", '{"adapter":"http"', "\u0000"]) {
      assertError(await order(stage, body), 400, "BAD_REQUEST");
    }
    const init = { method: "POST", headers: { "Idempotency-Key": "k" }, body: "x" };
    assertError(await call(`${stage.url}/v1/orders`, init), 415, "UNSUPPORTED_MEDIA_TYPE");
  });
});

Deno.test("a payload of the deepest nesting is sent as it is, or refused", async () => {
  for (const depth of [100, 1_000, 7_900]) {
    const payload = "[".repeat(depth) + "]".repeat(depth);
    const body = `{"adapter":"http","url":${JSON.stringify(url)},"payload":${payload}}`;
    const { status, json } = await order(stage, body);
    assert.ok(status === 202 || json.code === "BAD_REQUEST", `${depth}: ${status}`);
  }
});

Deno.test("the key is 1 to 255 visible ASCII characters", async () => {
  const body = { adapter: "http", url, payload: {} };
  const to = `${stage.url}/v1/orders`;
  await leavesNoTrace(async () => {
    assertError(
      await command(to, body, undefined),
      400,
      "BAD_REQUEST",
      "Idempotency-Key is required",
    );
    for (const key of ["k".repeat(256), "a b", "\u00e9", " "]) {
      assertError(await command(to, body, key), 400, "BAD_REQUEST");
    }
  });
  assert.equal((await command(to, body, "k".repeat(255))).status, 202);
});

Deno.test("no caller can use the key of an order that an event may get", async () => {
  await leavesNoTrace(async () => {
    const key = `${crypto.randomUUID()}:${crypto.randomUUID()}`;
    for (const one of [key, key.toUpperCase()]) {
      assertError(await order(stage, { url }, one), 400, "BAD_REQUEST");
    }
  });
});

Deno.test("an unknown order is 404, and what names none is 400", async () => {
  assertError(await getOrder(stage, crypto.randomUUID()), 404, "NOT_FOUND");
  for (const id of ["ann", "1", " ", "0".repeat(36)]) {
    const { status } = await getOrder(stage, id);
    assert.ok([400, 404].includes(status), `${id}: ${status}`);
  }
  assertError(await findOrder(stage, newKey()), 404, "NOT_FOUND");
  for (const query of ["", "?idempotency_key=", `?idempotency_key=${"k".repeat(256)}`]) {
    assertError(await call(`${stage.url}/v1/orders${query}`), 400, "BAD_REQUEST");
  }
});

Deno.test("without a sender, orders are answered with 503, and everything else works", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const refused = await order(service, { url: "https://a.example/" });
  assertError(refused, 503, "SENDER_NOT_CONFIGURED");
  assert.equal((await call(`${service.url}/readyz`)).status, 200);
  const rows = await orderRows(place);
  assert.deepEqual(rows, []);
});

Deno.test("a name is judged at the send by its addresses", async () => {
  await using strict = await startOrders({}, { SENDER_ALLOW_ADDRESSES: "192.0.2.1" });
  await give(strict, { url: "http://localhost/" });
  const [row] = await untilAllAre(strict, ["ABORTED"]);
  assert.deepEqual([row?.last_error_code, row?.attempts], ["ADDRESS_BLOCKED", 1]);
  assert.doesNotMatch(row?.last_error_msg ?? "", /127\.0|::1/, "no address of a name is repeated");
  const [entry] = await ledger(strict);
  assert.deepEqual([entry?.http_status, entry?.reason_code], [403, "ADDRESS_BLOCKED"]);
});
