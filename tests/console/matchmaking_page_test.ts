// The pages of matchmaking in the console: the modes, a ticket, and dead letters that are sent back.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { newClient, tokensOf } from "../support/access.ts";
import { call } from "../support/api.ts";
import { join, joined, startMatchmaking } from "../support/matchmaking.ts";
import { browserOf, formTokenIn } from "./persons.ts";

const path = "/console/matchmaking";
const debug = { MATCHMAKING_DEBUG_ENABLED: "true" };
const hostile = `<img src=x onerror=alert(1)>`;

Deno.test("the modes and a ticket are shown, with nothing in them that a browser would run", async () => {
  await using service = await startMatchmaking({
    ...debug,
    MATCHMAKING_CONSOLE_PEER_URL: "notification=http://127.0.0.1:9",
  });
  const browser = browserOf(service.url);
  const ann = await joined(service, "ann", { attributes: { region: hostile } });
  const waiting = await browser.visit(`${path}?ticket_id=${ann}`);
  assert.match(waiting.html, /class="state good">QUEUED[^]*&lt;img src=x/);
  assert.match(waiting.html, /<td[^>]*>casual<\/td><td[^>]*>1<\/td>/);
  await joined(service, "bob");
  await until("it is matched and published", async () => {
    const { html } = await browser.visit(`${path}?ticket_id=${ann}`);
    return /class="state good">MATCHED[^]*class="state muted">GONE/.test(html);
  });
  const { html } = await browser.visit(`${path}?ticket_id=${ann}`);
  assert.match(html, /peers<\/dt><dd>\[&quot;bob&quot;\]/);
  assert.match(
    html,
    /href="http:\/\/127\.0\.0\.1:9\/console\/timeline\?by=event_id&amp;q=[0-9a-f-]{36}"/,
  );
  assert.match(html, /matches<\/dt><dd>1</);
  assert.match(html, /it can lose the last second\./);
  assert.doesNotMatch(html, /<img/);
  const unknown = await browser.visit(`${path}?ticket_id=${encodeURIComponent(hostile)}`);
  assert.match(unknown.html, /There is no such ticket\./);
  assert.doesNotMatch(unknown.html, /<img/);
});

Deno.test("the pipeline shows tickets that nobody pairs as a problem", async () => {
  await using service = await startMatchmaking({ ...debug, MATCHMAKING_WORKER_ENABLED: "false" });
  const browser = browserOf(service.url);
  for (const user of ["ann", "bob"]) {
    const { json } = await join(service, user);
    await service.redis("ZINCRBY", "mm:{casual}:queue", "-20000", json.ticket_id);
  }
  const { html } = await browser.visit("/console");
  assert.match(
    html,
    /<h2>Tickets<\/h2>[^]*<h2>Matches<\/h2>[^]*standing still[^]*<h2>Outbox<\/h2>/,
  );
  assert.match(html, /two users have waited 2\d s for each other in casual/);
});

Deno.test("a dead event is sent back by a form, and is in the log of operations", async () => {
  await using service = await startMatchmaking(debug);
  const dead = "mm:{casual}:dead";
  const event = ["event_type", "TicketExpired", "ticket_id", "x", "user_id", "ann"];
  const fields = [...event, "occurred_ms", "1", "waited_ms", "1", "dead_error", hostile];
  await service.redis("XADD", dead, "*", ...fields, "dead_attempts", "10");
  const browser = browserOf(service.url);
  const { html } = await browser.visit("/console/dead-letters");
  assert.match(html, /&lt;img src=x/);
  const [, id = ""] = /name="id" value="([^"]+)"/.exec(html) ?? [];
  const confirm = `/console/dead-letters/send-back?layer=matchmaking&id=${id}`;
  const form = await browser.visit(confirm);
  const fieldsOfForm = { token: formTokenIn(form.html), layer: "matchmaking", id };
  const sent = await browser.visit("/console/dead-letters/send-back", {
    ...fieldsOfForm,
    ...{ who: "kim", reason: "repaired" },
  });
  assert.equal(sent.status, 303, sent.html);
  assert.equal(await service.redis("XLEN", dead), 0);
  assert.match((await browser.visit("/console/operations")).html, /kim[^]*repaired/);
});

Deno.test("tickets are shown only with the scope debug:read", async () => {
  const [player, reader] = [newClient("eve", "matchmaking:act-as"), newClient("kim", "debug:read")];
  await using service = await startMatchmaking({ ...debug, ...tokensOf(player, reader) });
  for (const [client, status] of [[player, 403], [reader, 200]] as const) {
    for (
      const url of [path, "/debug/matchmaking/status", "/debug/matchmaking/ticket?ticket_id=x"]
    ) {
      const headers = { Authorization: `Bearer ${client.token}` };
      assert.equal((await call(`${service.url}${url}`, { headers })).status, status, url);
    }
  }
});
