// docs/events.md describes what is in the stream, and its example consumer copes with what it warns
// of.
import type { DescField } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { AccountEventSchema } from "../../proto/gen/account/v1/account_event_pb.ts";
import { EntitlementEventSchema } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { PointsEventSchema } from "../../proto/gen/points/v1/points_event_pb.ts";
import { grant, list, revoke } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { publish } from "../support/events.ts";
import { grantPoints } from "../support/points.ts";
import { natsUrl, readStream, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const page = await Deno.readTextFile(`${root}docs/events.md`);

/** Returns the cells of the first table after this text whose first column has this name. */
function tableOf(column: string, after = ""): string[][] {
  const lines = page.slice(page.indexOf(after)).split("\n");
  const head = lines.findIndex((line) => new RegExp(`^\\| ${column} `).test(line));
  const rows = lines.slice(head + 2);
  const end = rows.findIndex((line) => !line.startsWith("|"));
  return rows.slice(0, end).map((row) =>
    row.split("|").slice(1, -1).map((cell) => cell.trim().replaceAll("`", ""))
  );
}

Deno.test("docs/events.md names exactly the headers of an event", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_SEAL_KEY: "k".repeat(32) });
  await grant(kenri.url);
  await grantPoints(kenri.url);
  const events = () => readStream(natsUrl, kenri.stream);
  await until("both are published", async () => (await events()).length === 2);
  const named = tableOf("header").map(([name = ""]) => name);
  for (const { header } of await events()) {
    assert.deepEqual(named.toSorted(), header.keys().toSorted());
  }
});

for (const schema of [EntitlementEventSchema, PointsEventSchema, AccountEventSchema]) {
  Deno.test(`docs/events.md names the fields of ${schema.typeName} as the schema does`, () => {
    const fields = schema.fields.map((field) => [`${field.number}`, field.name, typeOf(field)]);
    const table = tableOf("number", `\`${schema.typeName}\`:`);
    assert.deepEqual(table.map((cells) => cells.slice(0, 3)), fields);
  });
}

function typeOf(field: DescField): string {
  if (field.message) return field.message.typeName;
  if (field.enum) return field.enum.name;
  if (field.fieldKind === "list") return `repeated ${nameOf(field.scalar)}`;
  return nameOf(field.scalar);
}

function nameOf(scalar: number | undefined): string {
  return { 3: "int64", 9: "string" }[scalar as number] ?? `scalar ${scalar}`;
}

Deno.test("the example consumer ends with the current state after crashes and duplicates", async () => {
  await using kenri = await startEntitlement();
  const users = Array.from({ length: 10 }, (_, i) => `user ${i}`);
  const changeAll = async (change: typeof grant) => {
    await Promise.all(users.map((user_id) => change(kenri.url, { user_id })));
  };
  const folder = await Deno.makeTempDir();
  const file = `${folder}/rights.db`;
  const mirror = () =>
    new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        `${root}docs/examples/mirror.ts`,
        kenri.stream,
        kenri.subject,
        "mirror",
        file,
      ],
      env: { NATS_URL: natsUrl },
      stdout: "null",
    }).spawn();
  let running = mirror();
  try {
    await changeAll(grant);
    await until("it has begun", async () => (await rightsIn(file)).length > 0);
    running.kill("SIGKILL");
    await running.status;
    for (const user_id of users) await grantPoints(kenri.url, { user_id });
    await changeAll(revoke);
    await changeAll(grant);
    await until("all is published", async () => {
      return (await readStream(natsUrl, kenri.stream)).length === 4 * users.length;
    });
    // All events again, the newest first, without the id by which JetStream would drop duplicates.
    const again = (await readStream(natsUrl, kenri.stream)).toReversed();
    const junk = new TextEncoder().encode("no event");
    await publish(natsUrl, kenri.subject, [
      ...again.filter(({ subject }) => subject === kenri.subject).map(({ data }) => ({
        body: data,
      })),
      { body: junk },
      { body: new Uint8Array() },
    ]);
    running = mirror();
    await until("it has taken all", () => nothingIsLeft(kenri.stream));
  } finally {
    running.kill("SIGKILL");
    await running.status;
  }
  const expected = await Promise.all(users.map(async (user_id) => {
    const { json } = await list(kenri.url, user_id);
    const [{ stock_keeping_unit, status, version }] = json.entitlements;
    return { user_id, stock_keeping_unit, active: status === "ACTIVE" ? 1 : 0, version };
  }));
  assert.deepEqual(await rightsIn(file), expected);
  assert.deepEqual(new Set(expected.map(({ version }) => version)), new Set([3]));
  await Deno.remove(folder, { recursive: true });
});

async function rightsIn(file: string): Promise<Record<string, unknown>[]> {
  if (!await Deno.stat(file).catch(() => undefined)) return [];
  using database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  try {
    const rows = database.prepare("select * from rights order by user_id").all();
    return rows.map((row) => ({ ...row }));
  } catch {
    return []; // The table does not exist yet.
  }
}

function nothingIsLeft(stream: string): Promise<boolean> {
  return withNats(natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    const { num_pending, num_ack_pending } = await manager.consumers.info(stream, "mirror");
    return num_pending === 0 && num_ack_pending === 0;
  });
}
