// `deno task ops`: its JSON, its exit codes and its errors. Its texts are in docs/operations.md,
// and operations_page_test.ts compares them.
import assert from "node:assert/strict";
import { program as entitlement } from "../../entitlement/program.ts";
import { program as notification } from "../../notification/program.ts";
import { readSettings } from "../../ops/settings.ts";
import { grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { countsOf, untilAllAcked, untilSent } from "../support/notification.ts";
import { ops } from "./ops.ts";
import { failingSends, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const nowhere = {
  entitlement: { url: "http://127.0.0.1:1" },
  notification: { url: "http://127.0.0.1:1" },
};

Deno.test("the exit code shows whether there is a problem", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id: "ann" });
  await untilSent(place, 1);
  await untilAllAcked(place);
  const well = await ops(stack, "status");
  assert.deepEqual([well.code, well.output.trimEnd().split("\n").at(-1)], [0, "All is well."]);

  await grant(entitlement.url, { user_id: "unlucky" });
  await until("it is dead", async () => (await countsOf(place)).notification_dlq === 1);
  assert.equal((await ops(stack, "status")).code, 1);
  assert.equal((await ops(stack, "timeline", "--user", "ann")).code, 0);
  assert.equal((await ops(stack, "timeline", "--user", "nobody")).code, 1);
  assert.equal((await ops(stack, "timeline", crypto.randomUUID())).code, 1);
  assert.equal((await ops(stack, "dead", "show", "delivery", "999")).code, 1);
  assert.equal((await ops(stack, "dead", "send-back", "delivery", "999", "--reason", "r")).code, 1);
  assert.equal((await ops(stack, "outbox")).code, 0);
  assert.equal((await ops(stack, "deliveries")).code, 0);
  assert.equal((await ops(stack, "unreceived")).code, 0);

  await ask(
    entitlement.database.ownerUrl,
    "update reconciliation set checked_at = now() - interval '4 hours'",
  );
  assert.match(
    (await ops(stack, "status")).output,
    /^! last reconciliation 4 h ago: ops reconcile/m,
  );
});

Deno.test("--json prints each answer as JSON, and a dry run changes nothing", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id: "unlucky" }, "purchase-1");
  await until("it is dead", async () => (await countsOf(place)).notification_dlq === 1);
  const json = async (...args: string[]) => {
    const { output, errors } = await ops(stack, ...args, "--json");
    assert.equal(errors, "");
    return JSON.parse(output);
  };
  const { dead_letters: [dead] } = await json("dead", "list", "--layer", "delivery");
  assert.equal(dead.error, "Failure injected for this user");
  assert.deepEqual((await json("dead", "show", "delivery", dead.id)).payload.user_id, "unlucky");
  const { events: [event] } = await json("timeline", "--key", "purchase-1");
  assert.deepEqual([event.event_id, event.notification.status], [dead.event_id, "FAILED"]);
  assert.equal((await json("dead", "errors")).errors[0].count, 1);
  assert.equal((await json("status")).problems.length, 1);
  assert.deepEqual(await json("outbox"), { waiting: 0, oldest: [] });
  assert.deepEqual((await json("unreceived")).unreceived, []);

  const dry = await json("dead", "send-back", "delivery", dead.id, "--dry-run");
  assert.equal(dry.dead_letters[0].outcome, "WOULD_BE_SENT_BACK");
  const to = "2026-01-02T00:00:00Z";
  const range = ["--from", "2026-01-01T00:00:00Z", "--to", to];
  assert.equal((await json("replay", ...range, "--dry-run")).replayed, 0);
  assert.deepEqual((await json("reconcile", "--dry-run", "--grace", "0")).states, { RECEIVED: 1 });
  assert.deepEqual((await json("operations")).operations, []);
  assert.equal((await countsOf(place)).notification_dlq, 1);
});

Deno.test("wrong arguments are reported, and no service is asked", async () => {
  const cases: [string[], RegExp][] = [
    [["fly"], /^There is no command "fly"/],
    [["dead"], /^There is no command "dead"/],
    [["status", "now"], /^Unexpected argument "now"/],
    [["status", "--fast"], /^Unknown option '--fast'/],
    [["timeline"], /^exactly one of EVENT_ID, --user, --key, --reservation, --order is required/],
    [["timeline", "x", "--user", "ann"], /^exactly one of/],
    [["timeline", "x", "--reservation", "y"], /^exactly one of/],
    [["points", "next", "--limit", "201"], /^--limit must be a whole number up to 200, not "201"/],
    [
      ["dead", "show"],
      /^LAYER must be one of outbox, reservation, delivery, advisory, order, not ""/,
    ],
    [["dead", "show", "outbox"], /^the ID of the dead letter is required/],
    [["dead", "list", "--layer", "sent"], /^LAYER must be .* not "sent"/],
    [["dead", "list", "--limit", "many"], /^--limit must be a whole number up to 200, not "many"/],
    [["dead", "send-back", "delivery"], /^either IDs or --error is required/],
    [["dead", "send-back", "delivery", "1", "--error", "e"], /^either IDs or --error/],
    [["dead", "send-back", "delivery", "1"], /^--reason is required: it is recorded/],
    [["replay"], /^--from is required/],
    [
      ["replay", "--from", "yesterday", "--reason", "r"],
      /^--from must be a time such as .* not "yesterday"/,
    ],
    [["reconcile", "--since", "2026-13-01T00:00:00Z"], /^--since must be a time/],
    [["reconcile", "--grace", "-1"], /grace/],
  ];
  for (const [args, message] of cases) {
    const { code, output, errors } = await ops(nowhere, ...args);
    assert.deepEqual([code, output], [2, ""], args.join(" "));
    assert.match(errors, message);
    assert.match(errors, /deno task ops --help/);
  }
});

Deno.test("a refusal, a service that can't be reached and disabled routes are reported differently", async () => {
  await using stack = await startStack({ notification: { NOTIFICATION_DEBUG_ENABLED: "false" } });
  const bad = await ops(stack, "timeline", "no-uuid");
  assert.equal(bad.code, 2);
  assert.match(bad.errors, /^entitlement: event_id must be UUIDs/);
  const closed = await ops(stack, "status");
  assert.equal(closed.code, 3);
  assert.match(
    closed.errors,
    /^notification at \S+ shows nothing to operators\. .* NOTIFICATION_DEBUG_ENABLED=true/,
  );
  const away = await ops(nowhere, "status");
  assert.equal(away.code, 3);
  assert.match(
    away.errors,
    /^(entitlement|notification) at http:\/\/127\.0\.0\.1:1 can't be reached/,
  );
});

Deno.test("ops looks for the services where their settings say, with the same defaults", () => {
  const listed = [entitlement, notification].map(({ name, port }) => ({
    name,
    port,
    looks: {},
  }));
  const urlsOf = (environment: Record<string, string>) =>
    listed.map(readSettings(listed, (name) => environment[name]).urlOf);
  const listen = listed.map(({ port }) => `http://127.0.0.1:${port}`);
  assert.deepEqual(urlsOf({}), listen);
  const elsewhere = { ENTITLEMENT_HTTP_HOST: "::1", NOTIFICATION_HTTP_PORT: "99" };
  assert.deepEqual(urlsOf(elsewhere), ["http://[::1]:8080", "http://127.0.0.1:99"]);
});

Deno.test("the help names every command, and each command explains itself", async () => {
  const { code, output } = await ops(nowhere, "--help");
  assert.equal(code, 0);
  const commands = [...output.matchAll(/^ {2}([a-z]+(?: [a-z][a-z-]*)?)(?= |$)/gm)].map((
    [, name],
  ) => name);
  assert.ok(commands.length >= 12, output);
  for (const command of commands) {
    const said = await ops(nowhere, ...(command ?? "").split(" "), "--help");
    assert.equal(said.code, 0, said.errors);
    assert.ok(said.output.startsWith(`deno task ops ${command}`));
  }
  const alone = await ops(nowhere);
  assert.equal(alone.code, 2);
});
