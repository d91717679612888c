// `deno task ops`, `demo` and the client call a service that may not be Kenri. Its answers can't control the
// terminal, get no credential that is meant for another service, and can't keep a command running.
import assert from "node:assert/strict";
import { kenriClient } from "../../client/client.ts";
import { ops } from "../operators/ops.ts";
import { serve } from "../support/fake_service.ts";
import { root } from "../../tools/root.ts";

// ESC, a window title, the clipboard (OSC 52), CSI in one character, bells, right-to-left text, a line
// separator, an invisible character.
const hostile = "a\x1b[2J\x1b]0;t\x07\x1b]52;c;cm0gLXJm\x07\x9b2J\x9d0;t\x9c\b\u202egpj.\u2066" +
  "\u2028\u200b\u3164\u{e0041}\r\nb";
const steers = /[^\n\P{C}]|[\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const at = "2026-01-02T03:04:05.678Z";
const step = {
  at,
  step: hostile,
  begun_at: hostile,
  worker: hostile,
  error: hostile,
  who: hostile,
};
const row = {
  ...{ event_id: hostile, user_id: hostile, stock_keeping_unit: hostile, aggregate_key: hostile },
  ...{ version: hostile, type: hostile, status: hostile, trace_id: hostile, caller: hostile },
  ...{ idempotency_key: hostile, created_at: at, next_retry_at: hostile, lease_until: hostile },
  ...{ locked_by: hostile, last_error: hostile, layer: hostile, id: hostile, error: hostile },
  ...{ since: hostile, age_seconds: 5, attempts: hostile, payload: { [hostile]: hostile } },
  ...{ count: 3, oldest: at, outcome: hostile, why: hostile, state: hostile, occurred_at: hostile },
  ...{
    kind: hostile,
    at: hostile,
    audit_id: hostile,
    says: hostile,
    done_at: hostile,
    who: hostile,
  },
  ...{ reason: hostile, items: [hostile], steps: [{ ...step, reason: hostile }] },
};
// It contains every member that any command reads.
const everything = {
  ...{ dead_letters: [row], errors: [row], events: [row], operations: [row], problems: [row] },
  ...{ unreceived: [row], oldest: [row], waiting: hostile, oldest_waiting_seconds: 100 },
  ...{ nats: false, undelivered: hostile, unacknowledged: hostile, last_published_at: hostile },
  orders: {
    ...{ oldest: [row], waiting: hostile, oldest_waiting_seconds: 100, parked: hostile },
    ...{ oldest_parked_seconds: hostile, endpoints: { FAILING: hostile, [hostile]: hostile } },
  },
  ...{ undelivered_points: hostile, unacknowledged_points: hostile },
  ...{ proven_until: at, checked_at: at, key: { idempotency_key: hostile, at, status: hostile } },
  ...{ replayed: hostile, complete: true, before: at, entitlements: 1, reached: 1, unhashed: 0 },
  ...{
    erased: 0,
    hashed: 1,
    marks: "1",
    unhashed_marks: "0",
    late: 0,
    rows: { [hostile]: 3 },
    operation_id: hostile,
  },
  ...{ states: { MISSING: 1, [hostile]: 1 } },
};

// Members that differ from route to route.
const points = {
  ...{ unit: hostile, balance: 1, updated_at: hostile, due_at: hostile, reservation_id: hostile },
  ...{ point_amount: hostile, attempt_count: hostile, transaction_id: hostile },
  ...{ balance_after: hostile, source_id: hostile },
};
const several = [{ ...row, ...points }];
const ofRoute: Record<string, Record<string, unknown>> = {
  status: {
    reservations: {
      ...{ waiting: hostile, oldest_waiting_seconds: 100, oldest: several },
      ...{ upcoming: hostile, next_due_at: hostile },
    },
  },
  upcoming: { reservations: several },
  user: { reservations: several, balances: several, transactions: several },
  find: {
    accounts: [{
      ...{ user_id: hostile, display_name: hostile, locale: hostile, status: hostile },
      ...{ roles: [hostile], version: hostile, session_epoch: hostile, ended_sessions: hostile },
      ...{ created_at: hostile, updated_at: hostile },
      identities: [{ ...{ provider: hostile, subject: hostile }, last_login_at: hostile }],
      audit: [{ event_id: hostile, action: hostile, actor: hostile, reason: hostile }],
    }],
  },
  suspend: { outcome: "CHANGED" },
  roles: { outcome: "CHANGED" },
  verify: { reservations: 1, balances: 1, transactions: 1, problems: several },
};

function answerTo(request: Request, answer: Record<string, unknown> = everything): Response {
  const route = new URL(request.url).pathname.split("/").at(-1) ?? "";
  return Response.json({ ...answer, ...ofRoute[route] });
}

const commands = [
  ["status"],
  ["timeline", crypto.randomUUID()],
  ["timeline", "--user", "ann"],
  ["timeline", "--key", "k1"],
  ["dead", "list"],
  ["dead", "errors"],
  ["dead", "show", "outbox", "1"],
  ["dead", "send-back", "outbox", "1", "--reason", "r"],
  ["outbox"],
  ["deliveries"],
  ["reconcile"],
  ["unreceived"],
  ["replay", "--from", "1h", "--reason", "r"],
  ["audit", "verify"],
  ["points"],
  ["points", "late"],
  ["points", "next"],
  ["points", "--user", "ann"],
  ["points", "verify"],
  ["erase-user", "ann", "--reason", "r"],
  ["operations"],
  ["accounts", crypto.randomUUID()],
  ["accounts", "late"],
  ["accounts", "suspend", "ann", "--reason", "r"],
  ["accounts", "roles", "ann", "ADMIN", "--reason", "r"],
];

for (const command of commands) {
  Deno.test(`ops ${command.slice(0, 2).join(" ")} prints no terminal control codes`, async () => {
    const { waiting, ...others } = everything;
    const answer = command[0] === "erase-user" ? { ...others, waiting: 0 } : { ...others, waiting };
    await using service = serve((request) => answerTo(request, answer));
    const all = { entitlement: service, notification: service, account: service };
    for (const more of [[], ["--json"]]) {
      const { code, output, errors } = await ops(all, ...command, ...more);
      assert.ok(code <= 1, errors);
      assert.equal(errors, "");
      assert.ok(output.length > 10);
      assert.doesNotMatch(output, steers);
      if (more.length > 0) JSON.parse(output);
    }
  });
}

Deno.test("JSON output contains exactly what the service answered", async () => {
  await using service = serve(() => Response.json(everything));
  const both = { entitlement: service, notification: service };
  const { output } = await ops(both, "dead", "show", "outbox", "1", "--json");
  assert.equal(JSON.parse(output).error, hostile);
});

Deno.test("an answer of another shape is a problem of the service, and steers no terminal", async () => {
  for (const answer of [{}, null, [], hostile, { ...everything, marks: hostile }]) {
    await using service = serve(() => Response.json(answer));
    const both = { entitlement: service, notification: service };
    const { code, output, errors } = await ops(both, "audit", "verify");
    assert.deepEqual([code, output], [3, ""]);
    assert.match(errors, /^A service gave an answer that ops can't read: /);
    assert.doesNotMatch(errors, steers);
  }
});

Deno.test("a refusal of the service can't control the terminal", async () => {
  for (const status of [400, 401, 403, 409, 500, 503]) {
    await using service = serve(() => Response.json({ message: hostile }, { status }));
    const { code, output, errors } = await ops(
      { entitlement: service, notification: service },
      "status",
    );
    assert.equal(code, status === 400 ? 2 : 3);
    assert.equal(output, "");
    assert.match(errors, /a\\u\{1b\}\[2J/);
    assert.doesNotMatch(errors, steers);
  }
});

const redirections = [301, 302, 303, 307, 308];

Deno.test("ops follows no redirect, with or without a body", async () => {
  await using elsewhere = serve(() => Response.json(everything));
  for (const status of redirections) {
    await using service = serve(() =>
      new Response(null, { status, headers: { Location: `${elsewhere.url}/x` } })
    );
    const both = { entitlement: service, notification: service };
    for (const command of [["status"], ["dead", "send-back", "outbox", "1", "--reason", "r"]]) {
      const { code, errors } = await ops(both, ...command, "--token", "t".repeat(43));
      assert.equal(code, 3);
      assert.match(errors, /can't be reached: .*redirect/);
    }
    assert.match(service.asked[0]?.headers.get("Authorization") ?? "", /^Bearer t/);
  }
  assert.deepEqual(elsewhere.asked, []);
});

Deno.test("the client follows no redirect", async () => {
  await using elsewhere = serve(() => Response.json({}));
  for (const status of redirections) {
    await using service = serve(() =>
      new Response(null, { status, headers: { Location: `${elsewhere.url}/x` } })
    );
    const client = kenriClient(service.url, { token: "t" });
    const change = { user_id: "u", stock_keeping_unit: "s", reason: "r", purchase_id: "p" };
    await assert.rejects(client.grant("k", change), { name: "Refused", status });
    await assert.rejects(client.list("u"), { name: "Refused", status });
  }
  assert.deepEqual(elsewhere.asked, []);
});

const endless: [what: string, command: string[]][] = [
  ["points verify", ["points", "verify"]],
  ["audit verify", ["audit", "verify"]],
  ["reconcile", ["reconcile"]],
  ["dead send-back", ["dead", "send-back", "outbox", "--error", "e", "--reason", "r"]],
  ["erase-user", ["erase-user", "ann", "--reason", "r"]],
];

for (const [what, command] of endless) {
  Deno.test(`${what} ends when a cursor is repeated`, async () => {
    for (const length of [1, 3]) {
      let pages = 0;
      await using service = serve(() =>
        Response.json({ ...everything, waiting: 0, next_cursor: `c${pages++ % length}` })
      );
      const both = { entitlement: service, notification: service };
      const { code, errors } = await ops(both, ...command);
      assert.equal(code, 3);
      assert.match(errors, /does not finish: it makes no progress/);
      assert.equal(service.asked.length, length + 1);
    }
  });
}

Deno.test("a replay that makes no progress and is never complete ends", async () => {
  await using service = serve(() => Response.json({ replayed: 0, complete: false }));
  const both = { entitlement: service, notification: service };
  const { code, errors } = await ops(both, "replay", "--from", "1h", "--reason", "r");
  assert.equal(code, 3);
  assert.match(errors, /does not finish: it makes no progress/);
  assert.equal(service.asked.length, 1);
});

Deno.test("the demo prints no terminal control codes, and follows no redirect", async () => {
  await using elsewhere = serve(() => Response.json({}));
  await using redirecting = serve(() => Response.redirect(`${elsewhere.url}/x`, 307));
  await using hostileOne = serve((request) =>
    new URL(request.url).pathname === "/livez"
      ? Response.json({})
      : Response.json({ message: hostile }, { status: 403 })
  );
  for (const { url } of [redirecting, hostileOne]) {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--allow-net", "--allow-env"],
        `${root}tools/demo/demo.ts`,
        ...["--changes", "1", "--entitlement", url, "--notification", url, "--token", "t"],
      ],
      env: { NO_COLOR: "1" },
    }).output();
    const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
    assert.equal(code, 1, said);
    assert.doesNotMatch(said, steers);
  }
  assert.deepEqual(elsewhere.asked, []);
});
