// Asking another service: an answer or a failure in time, and nothing carried out twice.
import assert from "node:assert/strict";
import {
  type Ask,
  AskFailed,
  type AskFailure,
  openService,
  type Service,
  type ServiceOptions,
} from "@kenri/shared/http/ask_service.ts";
import { type Receiver, startReceiver } from "../../tools/receiver/receiver.ts";

const get: Ask = { method: "GET", path: "/" };
const post: Ask = { method: "POST", path: "/", body: "{}" };

async function open(more: Partial<ServiceOptions> = {}) {
  const receiver = await startReceiver();
  const service = openService({
    name: "other",
    url: receiver.url,
    token: undefined,
    deadlineMs: 500,
    tryMs: 200,
    tries: 2,
    ...more,
  });
  return {
    receiver,
    service,
    [Symbol.asyncDispose]: async () => {
      service.close();
      await receiver.stop();
    },
  };
}

async function failureOf(service: Service, request: Ask): Promise<[AskFailure, number]> {
  const from = performance.now();
  const failed = await service.ask(request).then(
    ({ status }) => assert.fail(`it answered ${status}`),
    (error) => error,
  );
  assert.ok(failed instanceof AskFailed, `${failed}`);
  return [failed.failure, performance.now() - from];
}

const sent = ({ received }: Receiver) => received.length;

Deno.test("a try, and all tries together, end in time", async () => {
  await using one = await open();
  one.receiver.behave("hang");
  const [failure, tookMs] = await failureOf(one.service, get);
  assert.equal(failure, "TIMEOUT");
  assert.ok(tookMs >= 399 && tookMs < 900, `two tries took ${tookMs} ms`);
  await using many = await open({ tries: 10 });
  many.receiver.behave("hang");
  const [, allMs] = await failureOf(many.service, get);
  assert.ok(allMs >= 499 && allMs < 900, `all tries took ${allMs} ms`);
  assert.equal(sent(many.receiver), 3);
});

Deno.test("a deadline that several share ends a request, and it is not tried again", async () => {
  await using one = await open({ deadlineMs: 5_000, tryMs: 2_000 });
  one.receiver.behave("hang");
  const [failure, tookMs] = await failureOf(one.service, {
    ...get,
    deadline: AbortSignal.timeout(100),
  });
  assert.deepEqual([failure, sent(one.receiver)], ["TIMEOUT", 1]);
  assert.ok(tookMs < 900, `it took ${tookMs} ms`);
});

Deno.test("a look-up is tried again, a change only if it can't have been carried out", async () => {
  for (const behaves of [500, 302, "close", "reset", "broken head", "hang"] as const) {
    for (const [request, tries] of [[get, 2], [post, 1], [{ ...post, isRepeatable: true }, 2]]) {
      await using one = await open();
      one.receiver.behave(behaves);
      const [failure] = await failureOf(one.service, request as Ask);
      assert.equal(failure, behaves === "hang" ? "TIMEOUT" : "BAD_GATEWAY");
      assert.equal(sent(one.receiver), tries, `${behaves} ${JSON.stringify(request)}`);
    }
  }
});

Deno.test("a change that was refused a connection is tried again", async () => {
  await using one = await open({ tries: 10_000 });
  await one.receiver.stop();
  const asking = one.service.ask(post);
  await new Promise((soon) => setTimeout(soon, 50));
  await one.receiver.start();
  assert.equal((await asking).status, 200);
  assert.equal(sent(one.receiver), 1);
  await one.receiver.stop();
  await using never = await open({ url: one.receiver.url });
  assert.equal((await failureOf(never.service, post))[0], "UNAVAILABLE");
});

Deno.test("the breaker opens after five failures, and closes after a probe", async () => {
  await using one = await open({ tries: 1, pauseMs: 300 });
  one.receiver.behave(500);
  for (let i = 0; i < 5; i++) await failureOf(one.service, post);
  assert.deepEqual((await failureOf(one.service, get))[0], "UNAVAILABLE");
  assert.equal(sent(one.receiver), 5);
  await new Promise((later) => setTimeout(later, 310));
  await failureOf(one.service, get); // the first probe fails
  await failureOf(one.service, get);
  assert.equal(sent(one.receiver), 6);
  await new Promise((later) => setTimeout(later, 310));
  one.receiver.behave({ delayMs: 50 });
  const [probe, ...others] = await Promise.allSettled(
    Array.from({ length: 10 }, () => one.service.ask(get)),
  );
  assert.equal(probe?.status, "fulfilled");
  assert.deepEqual(new Set(others.map(({ status }) => status)), new Set(["rejected"]));
  assert.equal(sent(one.receiver), 7);
  await Promise.all(Array.from({ length: 10 }, () => one.service.ask(post)));
  assert.equal(sent(one.receiver), 17);
});

Deno.test("4xx are answers, with their headers", async () => {
  await using one = await open();
  one.receiver.behave({ status: 409, headers: { "X-Some": "a: b", "ETag": '"1"' }, body: "é" });
  const { status, headers, text } = await one.service.ask(get);
  assert.deepEqual([status, headers.get("X-Some"), headers.get("ETag"), text], [
    ...[409, "a: b", '"1"', "é"],
  ]);
});

Deno.test("the service's own token is sent, and none without one", async () => {
  await using one = await open({ token: "kenri_1" });
  await one.service.ask(get);
  assert.equal(one.receiver.received[0]?.headers.get("Authorization"), "Bearer kenri_1");
  await using two = await open();
  await two.service.ask(get);
  assert.equal(two.receiver.received[0]?.headers.get("Authorization"), null);
  const none = openService({ ...nowhere, url: undefined });
  assert.equal((await failureOf(none, get))[0], "UNAVAILABLE");
});

const nowhere = { name: "none", token: undefined, deadlineMs: 1, tryMs: 1, tries: 1 };
