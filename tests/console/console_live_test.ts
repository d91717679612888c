// The stream of figures behind the console: it has a limited number of listeners, reads the
// database only for them, and does not delay a shutdown.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { call, grant } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { startIssuer } from "../access/issuer.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const debug = { ENTITLEMENT_DEBUG_ENABLED: "true" };

interface Listener extends AsyncDisposable {
  next(): Promise<Record<string, string> | undefined>; // undefined at the end of the stream
}

async function listen(url: string, headers = {}): Promise<Listener> {
  const answer = await fetch(`${url}/console/live`, { headers });
  assert.deepEqual(
    [answer.status, answer.headers.get("Content-Type")],
    [200, "text/event-stream"],
  );
  const text = answer.body?.pipeThrough(new TextDecoderStream() as never) as ReadableStream<string>;
  const reader = text.getReader();
  let rest = "";
  return {
    async next() {
      for (;;) {
        const found = /data: (.*)\n\n/.exec(rest);
        if (found) {
          rest = rest.slice(found.index + found[0].length);
          return JSON.parse(found[1] ?? "");
        }
        const { done, value } = await reader.read();
        if (done) return undefined;
        rest += value;
      }
    },
    [Symbol.asyncDispose]: () => reader.cancel().catch(() => {}),
  };
}

async function figuresUntil(
  listener: Listener,
  wanted: (figures: Record<string, string>) => boolean,
) {
  for (;;) {
    const figures = await inTime("new figures", listener.next());
    assert.ok(figures, "the stream has ended");
    if (wanted(figures)) return figures;
  }
}

Deno.test("a listener gets the new figures of every live element of the page", async () => {
  await using kenri = await startEntitlement(debug);
  const html = await (await fetch(`${kenri.url}/console`)).text();
  const places = [...html.matchAll(/data-live="([\w-]+)"/g)].map(([, name]) => name);
  await using listener = await listen(kenri.url);
  const first = await figuresUntil(listener, () => true);
  assert.deepEqual(Object.keys(first).sort(), places.sort());
  assert.match(first["problems"] ?? "", /All is well/);

  await kenri.rows("update outbox_events set published_at = now()");
  await grant(kenri.url, { user_id: "<b>" });
  await figuresUntil(listener, (figures) => /flowing/.test(figures["stage-relay"] ?? ""));
  await kenri.rows(
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, next_retry_at, last_error)
     values (gen_random_uuid(), 'EntitlementGranted', '<b>:x', '{}', now() + interval '1 h', '<i>')`,
  );
  const { oldest = "" } = await figuresUntil(
    listener,
    ({ oldest = "" }) => !oldest.includes("No event is waiting"),
  );
  assert.match(oldest, /&lt;b&gt;:x[^]*&lt;i&gt;/);
});

Deno.test("the tables are read once for all listeners, and not while there are none", async () => {
  await using kenri = await startEntitlement(debug);
  {
    await using listeners = new AsyncDisposableStack();
    const all = await Promise.all(Array.from({ length: 10 }, () => listen(kenri.url)));
    for (const listener of all) listeners.use(listener);
    await Promise.all(all.map((listener) => figuresUntil(listener, () => true)));
    const before = await looks(kenri);
    for (let i = 0; i < 3; i++) await Promise.all(all.map((listener) => listener.next()));
    const made = await looks(kenri) - before;
    assert.ok(made >= 3 && made <= 5, `${made} looks for 3 seconds and 10 listeners`);
  }
  // A read that was under way when the last listener left is still counted.
  let last = -1;
  await until("nothing is read for two seconds", async () => {
    const before = await looks(kenri);
    await new Promise((over) => setTimeout(over, 2_000));
    last = await looks(kenri);
    return last === before;
  });
  assert.ok(last > 0);
});

// In these tests only the console reads this table; otherwise the hourly reconciliation does.
async function looks(kenri: Entitlement): Promise<number> {
  const [row] = await kenri.rows<{ count: number }>(
    `select (seq_scan + coalesce(idx_scan, 0))::int as count
     from pg_stat_user_tables where relname = 'unreceived_events'`,
  );
  return row?.count ?? 0;
}

Deno.test("the number of listeners is limited, and a listener that leaves makes room", async () => {
  await using kenri = await startEntitlement(debug);
  await using listeners = new AsyncDisposableStack();
  const first = await listen(kenri.url);
  for (let i = 1; i < 32; i++) listeners.use(await listen(kenri.url));
  const refused = await fetch(`${kenri.url}/console/live`);
  assert.deepEqual([refused.status, refused.headers.get("Retry-After")], [503, "60"]);
  await refused.body?.cancel();
  assert.equal((await call(`${kenri.url}/readyz`)).status, 200, "the rest goes on");
  await first[Symbol.asyncDispose]();
  await until("there is a place", async () => {
    const answer = await fetch(`${kenri.url}/console/live`);
    await answer.body?.cancel();
    return answer.status === 200;
  });
});

Deno.test("one caller can't take all the places of listeners", async () => {
  const [kim, lee] = [newClient("kim", "debug:read"), newClient("lee", "debug:read")];
  await using kenri = await startEntitlement({ ...debug, ...tokensOf(kim, lee) });
  await using listeners = new AsyncDisposableStack();
  for (let i = 0; i < 8; i++) listeners.use(await listen(kenri.url, bearer(kim.token)));
  const refused = await fetch(`${kenri.url}/console/live`, { headers: bearer(kim.token) });
  await refused.body?.cancel();
  assert.deepEqual([refused.status, refused.headers.get("Retry-After")], [503, "60"]);
  listeners.use(await listen(kenri.url, bearer(lee.token)));
});

Deno.test("the stream of figures ends with the credential of its listener", async () => {
  await using issuer = await startIssuer();
  await using kenri = await startEntitlement({ ...debug, ...issuer.settings });
  const token = await issuer.sign({ sub: "kim", scope: "debug:read", inSeconds: -27 });
  await using listener = await listen(kenri.url, bearer(token));
  await figuresUntil(listener, () => true);
  while (await inTime("the stream ends", listener.next()));
});

Deno.test("a HEAD request takes no listener's place", async () => {
  await using kenri = await startEntitlement(debug);
  for (let i = 0; i < 40; i++) {
    const { status, headers } = await fetch(`${kenri.url}/console/live`, { method: "HEAD" });
    assert.deepEqual([status, headers.get("Content-Type")], [200, "text/event-stream"]);
  }
  await using listener = await listen(kenri.url);
  await figuresUntil(listener, () => true);
});

Deno.test("a shutdown ends open streams and does not wait for them", async () => {
  await using kenri = await startEntitlement(debug);
  await using listener = await listen(kenri.url);
  await figuresUntil(listener, () => true);
  const from = performance.now();
  kenri.service.signal("SIGTERM");
  while (await inTime("the stream ends", listener.next()));
  assert.equal(await inTime("the service ends", kenri.service.exited), 0);
  const seconds = (performance.now() - from) / 1_000;
  assert.ok(seconds < 4, `${seconds} s, of a grace of 10 s`);
  const problems = kenri.service.log.filter(({ level }) => level !== "info");
  const ofStart = /No credentials are configured| has one replica/;
  assert.deepEqual(problems.filter(({ message }) => !ofStart.test(message)), []);
});
