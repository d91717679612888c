// `deno task ops` with a third service in the list: each command includes it because of what it
// declares (parcel_looks.ts), and shows what the others know while it does not answer.
import assert from "node:assert/strict";
import { listed as parcel } from "./parcel_looks.ts";
import { type ParcelService, startParcels } from "./parcel_service.ts";
import * as programs from "../../services.ts";
import type { Looks } from "../../shared/operators/looks.ts";
import { startMatchmaking } from "../support/matchmaking.ts";
import { startAccount } from "../support/account.ts";
import { startGateway } from "../support/gateway.ts";
import { call, grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { serve } from "../support/fake_service.ts";
import { untilSent } from "../support/notification.ts";
import { look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Output, runOps } from "./ops.ts";

interface Three {
  stack: Stack;
  parcels: ParcelService;
}

const ops = ({ stack, parcels }: Three, ...args: string[]): Promise<Output> =>
  runOps("tests/operators/ops_with_parcels.ts", {
    entitlement: stack.entitlement,
    notification: stack.notification,
    parcel: parcels,
  }, args);

const nowhere = { url: "http://127.0.0.1:1" } as ParcelService;

async function insertParcels(
  { ownerUrl }: ParcelService,
  table: "parcels" | "returns",
  row: Record<string, string>,
): Promise<void> {
  const columns = Object.keys(row);
  await ask(
    ownerUrl,
    `insert into ${table} (${columns}) values (${columns.map((_, i) => `$${i + 1}`)})`,
    Object.values(row),
  );
}

Deno.test("status shows every service of the list, with all its queues, and who does not answer", async () => {
  await using stack = await startStack();
  await using parcels = await startParcels();
  const well = await ops({ stack, parcels }, "status");
  assert.equal(well.code, 0, well.errors);
  assert.match(
    well.output,
    /^parcel\n {2}parcels waiting on the table +0\n {2}items waiting +0\n {2}parcels weighed +1\n {2}dead letters \(parcel\) +0\n/m,
  );
  const event_id = crypto.randomUUID();
  const longAgo = new Date(Date.now() - 90_000).toISOString();
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await insertParcels(parcels, "returns", { event_id, due_at: longAgo });
  await insertParcels(parcels, "returns", { event_id: crypto.randomUUID(), due_at: tomorrow });
  await insertParcels(parcels, "parcels", { event_id, status: "FAILED", last_error: "torn" });
  const { code, output } = await ops({ stack, parcels }, "status");
  assert.equal(code, 1);
  assert.match(output, /^ {2}items waiting +1, the oldest for 9\d s$/m);
  assert.match(output, /^ {2}dead letters \(parcel\) +1$/m);
  assert.match(output, /^! an item has waited 9\d s: ops returns$/m);
  const returns = await ops({ stack, parcels }, "returns", "--json");
  assert.deepEqual(
    JSON.parse(returns.output).oldest.map((row: { event_id: string }) => row.event_id),
    [event_id],
  );
  assert.match((await ops({ stack, parcels }, "parcels")).output, /Nothing is waiting/);

  const away = await ops({ stack, parcels: nowhere }, "status");
  assert.equal(away.code, 3);
  assert.match(away.errors, /^parcel at http:\/\/127\.0\.0\.1:1 can't be reached/);
  assert.match(away.output, /^ {2}events waiting in the outbox +0$/m);
  assert.match(away.output, /^parcel: no answer$/m);
  assert.doesNotMatch(away.output, /All is well/);
  const json = await ops({ stack, parcels: nowhere }, "status", "--json");
  assert.deepEqual(Object.keys(JSON.parse(json.output)), [
    ...["entitlement", "notification", "parcel", "problems"],
  ]);
  assert.equal(JSON.parse(json.output).parcel, null);
});

Deno.test("a timeline has the steps of every service in the order of their times", async () => {
  await using stack = await startStack();
  await using parcels = await startParcels();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id: "ann" }, "purchase-1");
  await untilSent(place, 1);
  const unpublished = "select from outbox_events where status <> 'PUBLISHED'";
  await until("it is published", async () => (await entitlement.rows(unpublished)).length === 0);
  const [sent] = await ask<{ event_id: string }>(
    place.ownerUrl,
    "select event_id from notifications",
  );
  const { event_id = "" } = sent ?? {};
  const inSeconds = (seconds: number) => new Date(Date.now() + 1_000 * seconds).toISOString();
  await insertParcels(parcels, "parcels", {
    ...{ event_id, user_id: "ann", status: "PACKED" },
    ...{ ordered_at: inSeconds(30), packed_at: inSeconds(60) },
  });
  const stepsIn = ({ output }: Output) =>
    output.match(/^\d{4}-.*$/gm)?.map((line) => line.slice(25));
  const every = [
    ...[/^entitlement +CHANGED/, /^entitlement +PUBLISHED/, /^notification +RECEIVED/],
    ...[/^notification +SENT/, /^parcel +ORDERED/, /^parcel +PACKED/],
  ];
  for (const by of [[event_id], ["--key", "purchase-1"]]) {
    const found = await ops({ stack, parcels }, "timeline", ...by);
    assert.equal(found.code, 0, found.errors);
    assert.match(found.output, /^outbox +PUBLISHED\nnotification +SENT\nparcel +PACKED$/m);
    const steps = stepsIn(found) ?? [];
    assert.equal(steps.length, every.length, found.output);
    steps.forEach((step, i) => assert.match(step, every[i] ?? /^$/));
  }
  // Only the third service knows this one, and only by its user.
  const other = crypto.randomUUID();
  await insertParcels(parcels, "parcels", { event_id: other, user_id: "ann" });
  const ofUser = await ops({ stack, parcels }, "timeline", "--user", "ann");
  assert.match(ofUser.output, / OUTBOX +NOTIFICATION +PARCEL$/m);
  assert.match(ofUser.output, new RegExp(`${event_id}.* PUBLISHED +SENT +PACKED$`, "m"));
  assert.match(ofUser.output, new RegExp(`${other}.* unknown +not received +PENDING$`, "m"));

  const away = await ops({ stack, parcels: nowhere }, "timeline", "--user", "ann");
  assert.equal(away.code, 3);
  assert.match(away.errors, /^parcel at .* can't be reached/);
  assert.match(away.output, new RegExp(`${event_id}.* PUBLISHED +SENT +not packed$`, "m"));
});

Deno.test("the dead letters of every service are listed, shown and sent back, and its operations logged", async () => {
  await using stack = await startStack();
  await using parcels = await startParcels();
  const three = { stack, parcels };
  const event_id = crypto.randomUUID();
  const dead = { event_id, user_id: "ann", status: "FAILED", last_error: "torn" };
  await insertParcels(parcels, "parcels", dead);
  for (
    const args of [["dead", "list"], ["dead", "list", "--layer", "parcel"], ["dead", "errors"]]
  ) {
    const { code, output } = await ops(three, ...args);
    assert.equal(code, 0);
    assert.match(output, /^parcel .*torn$/m, args.join(" "));
  }
  const { output } = await ops(three, "dead", "list", "--json");
  const { dead_letters: [{ id }] } = JSON.parse(output);
  assert.match((await ops(three, "dead", "show", "parcel", id)).output, /torn\n\n"ann"/);
  const wrong = await ops(three, "dead", "show", "letter", id);
  assert.match(
    wrong.errors,
    /^LAYER must be one of outbox, reservation, delivery, advisory, order, parcel, not/,
  );
  const help = await ops(three, "dead", "list", "--help");
  assert.match(help.output, /^ +parcel +Parcels that nobody could pack\.$/m);

  const away = await ops({ stack, parcels: nowhere }, "dead", "list");
  assert.deepEqual([away.code, away.output.trimEnd()], [3, "There are no dead letters."]);
  const sent = await ops(three, "dead", "send-back", "parcel", id, "--reason", "a new box");
  assert.deepEqual([sent.code, /SENT_BACK/.test(sent.output)], [0, true]);
  assert.match((await ops(three, "operations")).output, /SEND_BACK +parcel .* kim +a new box$/m);
});

Deno.test("a user is erased from every service under one id, or from none", async () => {
  await using stack = await startStack();
  await using parcels = await startParcels();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "ann" });
  await untilSent(place, 1);
  await insertParcels(parcels, "parcels", { event_id: crypto.randomUUID(), user_id: "ann" });
  const erase = async () => {
    const args = ["erase-user", "ann", "--reason", "asked for it", "--json"];
    const { code, output } = await ops({ stack, parcels }, ...args);
    return { code, said: JSON.parse(output) };
  };
  const early = await erase();
  assert.deepEqual([early.code, early.said.waiting, early.said.erased], [1, 1, false]);
  for (const [name, { url }] of Object.entries({ entitlement, notification })) {
    const { events } = await look(url, `/debug/${name}/timeline?user_id=ann`);
    assert.equal(events.length, 1, `${name} still knows the user`);
  }
  await ask(parcels.ownerUrl, "update parcels set status = 'PACKED', packed_at = now()");
  const { code, said } = await erase();
  assert.deepEqual([code, said.erased, said.rows.parcels], [0, true, 1]);
  const erased = [{ user_id: `erased-${said.operation_id}` }];
  assert.deepEqual(await ask(parcels.ownerUrl, "select user_id from parcels"), erased);
  assert.deepEqual(await ask(place.ownerUrl, "select user_id from notifications"), erased);
});

Deno.test("a user is erased first where users are let in", async () => {
  const asked: string[] = [];
  const operation_id = crypto.randomUUID();
  await using service = serve((request) => {
    asked.push(new URL(request.url).pathname.split("/")[2] ?? "");
    return Response.json({ operation_id, outcome: "ERASED", waiting: 0, rows: {} });
  });
  const three = { entitlement: service, notification: service, parcel: service };
  const args = ["erase-user", "ann", "--reason", "r"];
  assert.equal((await runOps("tests/operators/ops_with_parcels.ts", three, args)).code, 0);
  const inOrder = ["parcel", "entitlement", "notification"];
  assert.deepEqual(asked, [...inOrder, ...inOrder], "without and with the change");
});

Deno.test("each service answers the routes that it declares, and no two the same commands and layers", async () => {
  await using stack = await startStack();
  await using parcels = await startParcels();
  await using account = await startAccount({ ACCOUNT_DEBUG_ENABLED: "true" });
  await using gateway = await startGateway(account, { GATEWAY_DEBUG_ENABLED: "true" });
  await using matchmaking = await startMatchmaking({ MATCHMAKING_DEBUG_ENABLED: "true" });
  const urls: Record<string, string> = {
    ...{ account: account.url, gateway: gateway.url, matchmaking: matchmaking.url },
    ...{ entitlement: stack.entitlement.url, notification: stack.notification.url },
    parcel: parcels.url,
  };
  const all = [...Object.values<{ name: string; looks?: Looks }>(programs), parcel]
    .filter(({ looks }) => looks !== undefined); // the sender shows nothing to operators
  for (const { name, looks = {} } of all) {
    const answers = async (path: string) => (await call(`${urls[name]}${path}`)).status;
    const expected: [boolean, string][] = [
      [!!looks.status, "status"],
      [!!looks.timeline, "timeline?user_id=ann"],
      [!!looks.logsOperations, "operations"],
      ...Object.keys(looks.deadLetters ?? {}).map((layer): [boolean, string] => [
        true,
        `dead-letters?layer=${layer}`,
      ]),
    ];
    for (const [has, path] of expected) {
      assert.equal(await answers(`/debug/${name}/${path}`), has ? 200 : 404, `${name} ${path}`);
    }
    for (const by of looks.timeline?.by ?? []) {
      const value = by.endsWith("_id") && by !== "user_id" ? crypto.randomUUID() : "x";
      assert.equal(await answers(`/debug/${name}/timeline?${by}=${value}`), 200, `${name} ${by}`);
    }
    const erases = await answers(`/operations/${name}/erase-user`); // a GET changes nothing
    assert.equal(erases, looks.erasesUsers ? 405 : 404);
  }
  const unique = (names: string[]) => assert.deepEqual(names, [...new Set(names)]);
  unique(all.flatMap(({ looks }) => Object.keys(looks?.deadLetters ?? {})));
  unique(all.flatMap(({ looks }) => [
    ...looks?.status?.queues.map(({ command }) => command) ?? [],
    ...Object.keys(looks?.commands ?? {}),
  ]));
  const help = await ops({ stack, parcels }, "--help");
  assert.match(help.output, /^ {2}parcels\n {6}List the parcels that have waited longest/m);
  assert.match(
    help.output,
    /^ {2}--parcel URL +address of parcel; default: from PARCEL_HTTP_HOST/m,
  );
});
