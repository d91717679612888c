// `deno task ops`, `demo` and the client call a service that may not be Kenri. Its answers can't control the
// terminal, get no credential that is meant for another service, and can't keep a command running.
import assert from "node:assert/strict";
import { kenriClient } from "../../client/client.ts";
import { ops } from "../operators/ops.ts";
import { serve } from "../support/fake_service.ts";
import { answerTo, everything, hostile, steers } from "./hostile_answers.ts";
import { root } from "../../tools/root.ts";

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
        ...["--changes", "1", "--entitlement", url, "--notification", url, "--account", url],
        ...["--token", "t"],
      ],
      env: { NO_COLOR: "1" },
    }).output();
    const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("");
    assert.equal(code, 1, said);
    assert.doesNotMatch(said, steers);
  }
  assert.deepEqual(elsewhere.asked, []);
});
