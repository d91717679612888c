// The receiver in docs/examples/webhooks.ts does what it claims.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { Webhook } from "standardwebhooks";
import { root } from "../../tools/root.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { until } from "../../tools/servers/wait.ts";

const secret = `whsec_${btoa("planted secret of an endpoint 32")}`;

interface Example extends AsyncDisposable {
  url: string;
  output: { text: string };
  rows(): Record<string, unknown>[];
  kill(): Promise<void>;
}

Deno.test("the example receiver stores each verified event once, also one that is sent again after it was killed", async () => {
  const file = await Deno.makeTempFile();
  {
    await using example = await startExample(file);
    const event = webhook("evt-1", { type: "PointsAdded", timestamp, data: { point_amount: 7 } });
    assert.equal((await post(example.url, event)).status, 204);
    await example.kill();
    await using again = await startExample(file);
    assert.equal((await post(again.url, event)).status, 204);
    assert.match(again.output.text, /^again: PointsAdded evt-1$/m);
    assert.deepEqual(again.rows(), [
      {
        webhook_id: "evt-1",
        type: "PointsAdded",
        occurred_at: timestamp,
        data: '{"point_amount":7}',
      },
    ]);
  }
  await Deno.remove(file);
});

Deno.test("the example receiver refuses what is not signed with its secret, is old, or is too long", async () => {
  const file = await Deno.makeTempFile();
  {
    await using example = await startExample(file);
    const good = webhook("evt-2", { type: "PointsAdded", timestamp, data: {} });
    const old = new Date(Date.now() - 600_000);
    const other = `whsec_${btoa("another secret of another endpoi")}`;
    const refused: [number, Sent][] = [
      [401, { ...good, body: good.body.replace("Added", "Taken") }],
      [401, { ...good, headers: { ...good.headers, "webhook-id": "evt-3" } }],
      [401, { ...good, headers: {} }],
      [401, webhook("evt-4", { type: "PointsAdded", timestamp, data: {} }, secret, old)],
      [401, webhook("evt-5", { type: "PointsAdded", timestamp, data: {} }, other)],
      [413, webhook("evt-6", { type: "PointsAdded", timestamp, data: "x".repeat(2_000_000) })],
    ];
    for (const [status, sent] of refused) {
      assert.equal((await post(example.url, sent)).status, status);
    }
    assert.deepEqual(example.rows(), []);
    assert.equal((await post(example.url, good)).status, 204);
    assert.equal(example.rows().length, 1);
  }
  await Deno.remove(file);
});

const timestamp = "2026-01-02T03:04:05.000006Z";

interface Sent {
  headers: Record<string, string>;
  body: string;
}

function webhook(id: string, event: object, key = secret, at = new Date()): Sent {
  const body = JSON.stringify(event);
  return {
    body,
    headers: {
      "webhook-id": id,
      "webhook-timestamp": `${Math.floor(at.getTime() / 1_000)}`,
      "webhook-signature": new Webhook(key).sign(id, at, body),
    },
  };
}

async function post(url: string, { headers, body }: Sent): Promise<Response> {
  const answer = await fetch(url, { method: "POST", headers, body });
  await answer.body?.cancel();
  return answer;
}

async function startExample(file: string): Promise<Example> {
  const port = freePort();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-prompt", `--allow-net=127.0.0.1:${port}`, "--allow-env=WEBHOOK_SECRET"],
      ...[`--allow-read=${file}`, `--allow-write=${file}`],
      ...[`${root}docs/examples/webhooks.ts`, `${port}`, file],
    ],
    env: { WEBHOOK_SECRET: secret },
    stdout: "piped",
  }).spawn();
  const output = { text: "" };
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream() as never)) {
      output.text += text;
    }
  })();
  const kill = async () => {
    try {
      child.kill("SIGKILL");
    } catch { /* It has ended already. */ }
    await Promise.all([child.status, reading]);
  };
  await until("it listens", () => output.text.includes("listening"));
  return {
    url: `http://127.0.0.1:${port}/`,
    output,
    rows: () => {
      using database = new DatabaseSync(file, { readOnly: true });
      return database.prepare("select * from events").all().map((row) => ({ ...row }));
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
