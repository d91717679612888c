// With OTEL_DENO the way of an event is one trace over both services.
import assert from "node:assert/strict";
import { post, someFields } from "../support/api.ts";
import { settingsOf, startEntitlement } from "../support/entitlement.ts";
import {
  freshPlace,
  settingsOf as notificationSettings,
  untilSent,
} from "../support/notification.ts";
import { type ReceivedSpan, receiveTraces } from "./otlp.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { freshDatabase } from "../support/databases.ts";
import { natsUrl, readStream } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const newTrace = () => crypto.randomUUID().replaceAll("-", "");
const caller = "b7ad6b7169203331";

async function withBoth(
  more: (service: string) => Settings,
  work: (url: string, place: Awaited<ReturnType<typeof freshPlace>>) => Promise<void>,
): Promise<void> {
  await using place = await freshPlace();
  await using database = await freshDatabase("entitlement");
  const services: ServiceProcess[] = await Promise.all([
    startService("entitlement", {
      ...settingsOf(database.serviceUrl, place),
      ...more("entitlement"),
    }),
    startService("notification", { ...notificationSettings(place), ...more("notification") }),
  ]);
  try {
    await work(services[0]?.url as string, place);
  } finally {
    await Promise.all(services.map((service) => service.stop())); // a service sends its last spans at the exit
  }
}

function grantIn(url: string, traceId: string, user_id: string, sampled = "01") {
  return post(url, "grants", { ...someFields, user_id }, crypto.randomUUID(), {
    traceparent: `00-${traceId}-${caller}-${sampled}`,
  });
}

Deno.test("a change is one trace from the request over both services to the send", async () => {
  await using receiver = receiveTraces();
  const traceId = newTrace();
  let subject = "";
  await withBoth(receiver.settings, async (url, place) => {
    subject = place.subject;
    assert.equal((await grantIn(url, traceId, "ann")).status, 200);
    await untilSent(place, 1);
  });
  const steps: [string, string][] = [
    ["entitlement", "POST /v1/entitlements/grants"],
    ["entitlement", "commit"],
    ["entitlement", `publish ${subject}`],
    ["notification", "receive"],
    ["notification", "send"],
  ];
  const ofTrace = receiver.spans.filter((span) => span.traceId === traceId);
  let parent = caller;
  for (const [service, name] of steps) {
    const step = ofTrace.find((span) => span.name === name);
    assert.ok(step, `${name} among ${ofTrace.map((span) => span.name)}`);
    assert.equal(step.service, service);
    assert.equal(step.parentSpanId, parent, name);
    assert.ok(!step.failed);
    parent = step.spanId;
  }
  assert.equal(ofTrace.length, steps.length);
});

Deno.test("a statement for a batch and the steps of its items are linked", async () => {
  await using receiver = receiveTraces();
  const traces = Array.from({ length: 20 }, newTrace);
  await withBoth(receiver.settings, async (url, place) => {
    await Promise.all(traces.map((traceId, i) => grantIn(url, traceId, `user-${i}`)));
    await untilSent(place, traces.length);
  });
  for (const name of ["commit", "receive"]) {
    const together = receiver.spans.filter((span) => span.name === `${name} together`);
    assert.ok(together.length < traces.length, `${together.length} statements`);
    const linked = together.flatMap(({ links }) => links.map(({ traceId }) => traceId));
    assert.deepEqual(linked.sort(), [...traces].sort());
    for (const step of receiver.spans.filter((span) => span.name === name)) {
      assert.ok(together.some(({ spanId }) => spanId === step.links[0]?.spanId));
    }
  }
  for (const name of ["settle relay", "settle delivery"]) {
    const settles = receiver.spans.filter((span) => span.name === `${name} together`);
    const linked = settles.flatMap(({ links }) => links.map(({ traceId }) => traceId));
    assert.deepEqual(linked.sort(), [...traces].sort());
  }
});

Deno.test("a trace names nobody", async () => {
  await using receiver = receiveTraces();
  await withBoth(receiver.settings, async (url, place) => {
    await grantIn(url, newTrace(), "ann-of-the-trace");
    await untilSent(place, 1);
    await (await fetch(`${url}/v1/users/ann-of-the-trace/entitlements?q=ann-of-the-trace`)).text();
  });
  const list = receiver.spans.find(({ name }) => name === "GET /v1/users/{user_id}/entitlements");
  assert.equal(list?.attributes["http.route"], "/v1/users/{user_id}/entitlements");
  assert.ok(!JSON.stringify(receiver.spans).includes("ann-of-the-trace"));
});

Deno.test("a failed send is a failed span, and each attempt has a span of its own", async () => {
  await using receiver = receiveTraces();
  const traceId = newTrace();
  const more = (service: string): Settings => ({
    ...receiver.settings(service),
    NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "2",
    NOTIFICATION_DELIVERY_BACKOFF_BASE: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MIN: "50ms",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "bad",
  });
  const sends = (): ReceivedSpan[] => receiver.spans.filter(({ name }) => name === "send");
  await withBoth(more, async (url) => {
    await grantIn(url, traceId, "bad");
    await until("both attempts are logged", () => sends().length === 2);
  });
  assert.deepEqual(sends().map(({ failed, traceId }) => [failed, traceId]), [
    [true, traceId],
    [true, traceId],
  ]);
});

Deno.test("without OTEL_DENO nothing is sent, and the caller's traceparent is passed on unchanged", async () => {
  await using receiver = receiveTraces();
  const { OTEL_DENO: _, ...others } = receiver.settings("entitlement");
  await using kenri = await startEntitlement(others);
  const traceId = newTrace();
  await grantIn(kenri.url, traceId, "ann");
  await until(
    "it is published",
    async () => (await readStream(natsUrl, kenri.stream)).length === 1,
  );
  const [message] = await readStream(natsUrl, kenri.stream);
  assert.equal(message?.header.get("traceparent"), `00-${traceId}-${caller}-01`);
  await kenri.service.stop();
  assert.deepEqual(receiver.spans, []);
});
