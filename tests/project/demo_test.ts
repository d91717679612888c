import assert from "node:assert/strict";
import { freshDatabase } from "../support/databases.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { startMatchmaking } from "../support/matchmaking.ts";
import { deleteStream, natsUrl } from "../support/streams.ts";
import { serve } from "../support/fake_service.ts";
import { requiredSettings } from "../../tools/load/stage.ts";
import { root } from "../../tools/root.ts";
import { countRows } from "../../tools/servers/asking.ts";

Deno.test("the demo shows all kinds of requests, and every change arrives", async () => {
  await using stack = await startStack();
  const { code, output } = await demo(stack, "--changes", "120", "--rate", "60");
  assert.equal(code, 0, output);
  assert.match(output, /grant {2}→ \w+-\w+ +[\w-]+ +200 ACTIVE +version \d+/);
  assert.match(output, /inbox ← \w+-\w+ +[\w-]+ +EntitlementGranted 1 after \d+ ms/);
  assert.match(output, /points → \w+-\w+ +[\w-]+ +\+\d+ in 3 s/);
  assert.match(output, /inbox ← \w+-\w+ +points +\+\d+ balance \d+ after \d+ ms/);
  const [given, found] = output.match(/points given, .* (\d+) +(\d+)\n/)?.slice(1) ?? [];
  assert.ok(given !== "0" && given === found, output);
  const [made, arrived] = output.match(/all changes +(\d+) +(\d+)/)?.slice(1).map(Number) ?? [];
  const events = await countRows(stack.entitlement.database.ownerUrl, "outbox_events");
  assert.deepEqual([made, arrived], [events, events]);
  assert.match(output, /Every change arrived exactly once\.\n$/);
  assert.ok(
    !output.includes("\x1b") && !output.includes("\r"),
    "It is plain where there is no terminal",
  );
});

Deno.test("in the demo players find each other, give up or stay alone, and are told so", async () => {
  await using matchmaking = await startMatchmaking({ MATCHMAKING_TICKET_TTL: "5s" });
  await using stack = await startStack({
    NOTIFICATION_MATCHMAKING_ENABLED: "true",
    NOTIFICATION_MATCHMAKING_STREAM: matchmaking.stream,
    NOTIFICATION_MATCHMAKING_SUBJECT: matchmaking.subject,
  });
  const few = ["--changes", "20", "--rate", "20"];
  const { code, output } = await demo(stack, ...few, "--matchmaking", matchmaking.url);
  assert.equal(code, 0, output);
  assert.match(output, /player → ivo-\w+ +plays with kai-\w+\n/);
  assert.match(output, /player → jun-\w+ +gave up\n/);
  assert.match(output, /player → max-\w+ +found nobody in time\n/);
  assert.match(output, /players: 4 found somebody, 1 gave up, 1 stayed alone\n/);
  assert.doesNotMatch(output, /got no notification/);

  const without = await demo(stack, ...few);
  assert.equal(without.code, 0, without.output);
  assert.match(without.output, /^No games: No matchmaking answers at /m);
});

Deno.test("the demo fails when something does not arrive", async () => {
  await using stack = await startStack({
    NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "1",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "a",
  });
  const { code, output } = await demo(stack, "--changes", "60", "--rate", "60");
  assert.equal(code, 1, output);
  assert.match(output, /Could not be delivered: ann-\w+ [\w-]+ EntitlementGranted 1\n/);
  assert.ok(!output.includes("Every change arrived"), output);
});

Deno.test("the demo fails when points are not on a balance", async () => {
  await using stack = await startStack();
  const balance = '"balance":';
  await using between = serve(async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    const body = method === "GET" ? null : between.asked.at(-1)?.body ?? "";
    const answer = await fetch(stack.entitlement.url + pathname + search, {
      method,
      headers,
      body,
    });
    const text = await answer.text();
    const forged = pathname.endsWith("/points") ? text.replace(balance, `${balance}1`) : text;
    const answered = new Headers(answer.headers);
    answered.delete("Content-Length");
    return new Response(forged, { status: answer.status, headers: answered });
  });
  const { code, output } = await demo(
    { ...stack, entitlement: { ...stack.entitlement, url: between.url } },
    ...["--changes", "60", "--rate", "60"],
  );
  assert.equal(code, 1, output);
  assert.match(output, /\w+-\w+ has 1\d+ points, not \d+\n/);
});

Deno.test("the demo reports why it can't start", async () => {
  await using stack = await startStack({ NOTIFICATION_DEBUG_ENABLED: "false" });
  const closed = await demo(stack);
  assert.equal(closed.code, 1);
  assert.match(
    closed.output,
    /The inbox answers 404.*\n.*NOTIFICATION_DEBUG_ENABLED=true, and KENRI_TOKEN/,
  );
  await stack.notification.stop();
  const away = await demo(stack);
  assert.equal(away.code, 1);
  assert.match(away.output, /^No service answers at http:\S+: start `deno task dev` in another/);
  const bad = await demo(stack, "--changes", "many");
  assert.deepEqual(bad, {
    code: 1,
    output: `--changes must be a whole number from 1 to 10000, not "many"\n`,
  });
});

interface Stack extends AsyncDisposable {
  entitlement: Entitlement;
  notification: ServiceProcess;
}

async function startStack(more: Settings = {}): Promise<Stack> {
  const entitlement = await startEntitlement();
  const database = await freshDatabase("notification");
  const { stream, subject } = entitlement;
  const place = { stream, subject, natsUrl, serviceUrl: database.serviceUrl };
  const notification = await startService("notification", {
    ...requiredSettings("notification", place),
    NOTIFICATION_DEBUG_ENABLED: "true",
    ...more,
  });
  return {
    entitlement,
    notification,
    async [Symbol.asyncDispose]() {
      await notification.kill();
      await entitlement.close();
      await database.drop();
      await deleteStream(natsUrl, entitlement.stream);
    },
  };
}

async function demo({ entitlement, notification }: Stack, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--allow-all", `${root}tools/demo/demo.ts`],
      ...["--entitlement", entitlement.url, "--notification", notification.url],
      ...["--account", "http://127.0.0.1:9", "--matchmaking", "http://127.0.0.1:9", ...args],
    ],
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const output = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
  return { code, output };
}
