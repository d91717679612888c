// A log line about a failure leads to its event, and contains no secret.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { call, grant, post, someFields } from "../support/api.ts";
import { ask, startEntitlement } from "../support/entitlement.ts";
import { eventOf, publish } from "../support/events.ts";
import { freshPlace, publishTo, startNotification } from "../support/notification.ts";
import { insertEvents, untilAll } from "../support/outbox.ts";
import type { LogLine, ServiceProcess } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

async function lineOf({ log }: ServiceProcess, message: RegExp): Promise<LogLine> {
  await until(`${message} is logged`, () => log.some((line) => message.test(line.message)));
  return log.find((line) => message.test(line.message)) as LogLine;
}

Deno.test("a failed request is found by its trace id, and its key is logged only as a hash", async () => {
  await using kenri = await startEntitlement();
  await ask(kenri.database.ownerUrl, "drop table idempotency_keys");
  const key = "secret-purchase-17";
  const fields = { ...someFields, user_id: "ann-of-the-log", purchase_id: "purchase-of-the-log" };
  const answer = await post(kenri.url, "grants", fields, key, { "X-Trace-Id": "order-17" });
  assert.equal(answer.status, 500);
  const line = await lineOf(kenri.service, /^A request failed/);
  assert.equal(line["trace_id"], "order-17");
  assert.equal(line["idempotency_key_sha256"], createHash("sha256").update(key).digest("hex"));
  const all = JSON.stringify(kenri.service.log);
  for (const secret of [key, "ann-of-the-log", "purchase-of-the-log"]) {
    assert.ok(!all.includes(secret), secret);
  }
});

Deno.test("an event that failed for good is logged with its trace and its worker", async () => {
  await using kenri = await startEntitlement();
  const [id] = await insertEvents(kenri.database.ownerUrl, [
    { key: "ann:sku", version: 1, payload: { trace_id: "order-18" } },
  ]);
  await untilAll(kenri.database.ownerUrl, "FAILED");
  const line = await lineOf(kenri.service, /gave up/);
  const { worker, event_id, trace_id, outcome } = line;
  assert.deepEqual([worker, event_id, trace_id, outcome], ["relay", id, "order-18", "failed"]);
});

Deno.test("an unreadable message is logged with what its headers contain", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const id = crypto.randomUUID();
  const headers = { "Nats-Msg-Id": id, trace_id: "order-19" };
  await publish(place.natsUrl, place.subject, [{ headers, body: new Uint8Array([255]) }]);
  const line = await lineOf(service, /can't be read and is not redelivered/);
  const { event_id, trace_id, outcome } = line;
  assert.deepEqual([event_id, trace_id, outcome], [id, "order-19", "unreadable"]);
});

for (const userIds of ["shown", "hashed", "hidden"]) {
  Deno.test(`with user ids ${userIds}, no line contains more of them`, async () => {
    await using place = await freshPlace();
    await using service = await startNotification(place, { LOG_USER_IDS: userIds });
    await publishTo(place, [eventOf({ userId: "ann-of-the-log" })]);
    const { user_id, user_id_sha256, notification_id } = await lineOf(service, /^Notification /);
    assert.ok(notification_id);
    const digest = createHash("sha256").update("ann-of-the-log").digest("hex");
    assert.deepEqual([user_id, user_id_sha256], [
      userIds === "shown" ? "ann-of-the-log" : undefined,
      userIds === "hashed" ? digest : undefined,
    ]);
    const isShown = JSON.stringify(service.log).includes("ann-of-the-log");
    assert.equal(isShown, userIds === "shown");
  });
}

Deno.test("refused requests are not logged", async () => {
  await using kenri = await startEntitlement();
  const lines = kenri.service.log.length;
  await grant(kenri.url);
  await grant(kenri.url);
  await post(kenri.url, "grants", {}, "key");
  await call(`${kenri.url}/nowhere`);
  assert.equal(kenri.service.log.length, lines, JSON.stringify(kenri.service.log));
});

Deno.test("no line of the log can control a terminal, and each contains its whole text", async () => {
  const log = new URL("../../shared/process/log.ts", import.meta.url).href;
  // Written as numbers, so that neither this program nor its output contains these characters.
  const written = "a\u001b[2J\u009b2J\u202e\u2028\u200b\u{e0041}b";
  const program = `
    import { startLog } from ${JSON.stringify(log)};
    const log = startLog("test");
    log.info("Said {text}", { text: ${JSON.stringify(written)}, error: new Error(${
    JSON.stringify(written)
  }) });
  `;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", program],
    cwd: root,
  }).output();
  const line = new TextDecoder().decode(stdout);
  assert.match(line, /^[\x20-\x7e]+\n$/);
  const { message, text } = JSON.parse(line);
  assert.equal(text, written);
  assert.ok(message.includes(text) || message.includes(JSON.stringify(text)), message);
});

Deno.test("a service goes on when nobody reads its log any more", async () => {
  const log = new URL("../../shared/process/log.ts", import.meta.url).href;
  const program = `
    import { startLog } from ${JSON.stringify(log)};
    const log = startLog("test");
    let lines = 0;
    setInterval(() => ++lines > 50 ? Deno.exit(3) : log.info("Line {lines}", { lines }), 10);
  `;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", program],
    cwd: root,
    stdout: "piped",
  }).spawn();
  await child.stdout.cancel();
  assert.equal((await child.status).code, 3);
});
