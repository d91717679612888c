// A service is added by one folder and one line in services.ts. `deno task services` writes the rest.
import assert from "node:assert/strict";
import { plantedPassword } from "../../tools/planted.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { type Settings, startProgram } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { call } from "../support/api.ts";
import { startDev } from "../project/dev.ts";
import { dropDatabase, dropRole, uniqueName, urlOf } from "../support/databases.ts";
import { deleteStream, natsUrl } from "../support/streams.ts";
import { type PlantedProject, projectWith } from "./planted_project.ts";

const line = 'export { program as greeting } from "./greeting/program.ts";\n';

/** It keeps greetings in tables and publishes them. */
const folder: Record<string, string> = {
  "program.ts": `import type { Service } from "@kenri/shared/process/program.ts";
import { schemaVersion, settings } from "./derived.ts";

export const program: Service = {
  name: "greeting",
  port: 8099,
  database: { schemaVersion },
  usesNats: true,
  dev: { settings: { GREETING_NATS_STREAM: "greetings", GREETING_NATS_SUBJECT: "greetings.all" } },
  settings,
};
`,
  "config.ts": `import * as capabilities from "@kenri/shared/process/service_settings.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { type WorkerOptions, workerSettings } from "@kenri/shared/queue/worker_settings.ts";
import { z } from "zod";
import { program } from "./program.ts";
import { streamSettings } from "./stream_settings.ts";

const { databaseConfig, natsConfig, serviceConfig, workerConfig } = capabilities;

export const schema = z.object({
  ...capabilities.databaseSettings("greeting"),
  ...prefixed("greeting.outbox", workerSettings),
  ...prefixed("greeting.letters", workerSettings),
  ...streamSettings,
  ...capabilities.natsSettings,
  ...capabilities.serviceSettings("greeting", program.port),
}).check(
  ...capabilities.databaseChecks("greeting"),
  ...capabilities.natsChecks,
  ...capabilities.workerChecks("greeting.outbox"),
  ...capabilities.workerChecks("greeting.letters"),
  ...capabilities.serviceChecks("greeting"),
);

export interface Config
  extends capabilities.ServiceConfig, capabilities.DatabaseConfig, capabilities.NatsConfig {
  outbox: WorkerOptions;
  letters: WorkerOptions;
}

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  return {
    ...serviceConfig("greeting", settings),
    ...databaseConfig("greeting", settings),
    ...natsConfig(settings),
    outbox: workerConfig("greeting.outbox", settings),
    letters: workerConfig("greeting.letters", settings),
  };
}
`,
  "stream_settings.ts":
    `import { eventStreamSettings, streamOf } from "@kenri/shared/nats/stream_settings.ts";
import type { NatsUse } from "@kenri/shared/nats/nats_use.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { z } from "zod";

export const streamSettings = prefixed("greeting.nats", eventStreamSettings);

type Settings = z.output<z.ZodObject<typeof streamSettings>> & { "nats.replicas": number };

export function natsUse(settings: Settings): NatsUse {
  return { streams: [streamOf("greeting.nats", settings)] };
}
`,
  "main.ts": `import { createApp } from "@kenri/shared/http/app.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { readConfig } from "./config.ts";
import { program } from "./program.ts";

await runService(program, readConfig, (config, { log }) => {
  const tables = openTables(program, config, log, () => Promise.resolve([]));
  const nats = openNats(program, config, log, { needsNats: false });
  const authenticator = openAccess(program, config, log);
  const checks = { ...tables.checks, ...nats.checks };
  const app = createApp({ title: "Kenri greeting", checks, authenticator, log });
  return { app, loops: [], close: () => closeAll(nats, tables) };
});
`,
  "migrations/0001_greetings.sql":
    "create table greetings (user_id text primary key, words text not null);\n",
  "migrations/grants.sql": `grant usage on schema public to :service;
grant select on schema_migrations to :service;
grant select, insert on greetings to :service;
`,
};

function withGreeting(more: Record<string, string> = {}): Promise<PlantedProject> {
  const files = Object.entries({ ...folder, ...more });
  return projectWith({
    ...Object.fromEntries(files.map(([name, text]) => [`greeting/${name}`, () => text])),
    "services.ts": (list) => list + line,
  });
}

/** What the task prints. */
async function task(project: PlantedProject, args: string[], env: Settings = {}): Promise<string> {
  const { code, said } = await project.run(["task", "--quiet", ...args], env);
  assert.equal(code, 0, said);
  return said;
}

/** Settings for a database and a stream that no other test uses, for each of three services. */
function freshSettings(): AsyncDisposable & { settings: Settings } {
  const name = uniqueName("added");
  const services = ["entitlement", "notification", "greeting"];
  const settings = services.map((service): Settings => {
    const [prefix, database] = [service.toUpperCase(), `${name}_${service}`];
    return {
      [`${prefix}_DATABASE_URL`]: urlOf({ database, user: database, password: plantedPassword }),
      [`${prefix}_MIGRATION_DATABASE_URL`]: urlOf({ database }),
      [`${prefix}_NATS_STREAM`]: service === "greeting" ? `${name}_2` : name,
      [`${prefix}_NATS_SUBJECT`]: service === "greeting" ? `${name}_2` : name,
    };
  });
  return {
    settings: Object.assign({ NATS_URL: natsUrl, NOTIFICATION_NATS_DURABLE: name }, ...settings),
    [Symbol.asyncDispose]: async () => {
      for (const service of services) {
        await dropDatabase(`${name}_${service}`);
        await dropRole(`${name}_${service}`);
      }
      await deleteStream(natsUrl, name);
    },
  };
}

Deno.test("a service that is added by one folder and one line is migrated, provisioned and started", async () => {
  await using project = await withGreeting();
  await task(project, ["services"]);
  await task(project, ["services", "--check"]);
  await using fresh = freshSettings();
  const settings: Settings = { ...fresh.settings, GREETING_HTTP_PORT: "0" };

  assert.match(await task(project, ["migrate"], settings), /^greeting: applied 0001_greetings/m);
  const users = await task(project, ["provision", "--users"], settings);
  const stream = settings["GREETING_NATS_STREAM"];
  assert.ok(users.includes("password: $GREETING_NATS_PASSWORD"), users);
  assert.ok(users.includes(`"$JS.API.STREAM.INFO.${stream}"`), users);
  assert.ok(users.includes(`"$JS.API.STREAM.CREATE.${stream}"`), users);

  const args = ["task", "--quiet", "greeting"];
  await using service = await startProgram("greeting", args, settings, project.path);
  await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
  assert.equal(await service.stop(), 0);

  const { said } = await project.run(["run", "--allow-env", "tools/permissions.ts", "greeting"], {
    GREETING_DATABASE_URL: "postgres://db/greeting",
    NATS_URL: "nats://nats",
  });
  assert.equal(said, "--allow-net=127.0.0.1:8099,db:5432,nats:4222\n");
});

Deno.test({
  name: "dev starts a service that is added by one folder and one line, with the others",
  ignore: Deno.build.os !== "linux", // as in tests/project/dev_test.ts
  fn: async () => {
    await using project = await withGreeting();
    await task(project, ["services"]);
    await using fresh = freshSettings();
    const { path } = project;
    const place = { path, clone: path, [Symbol.asyncDispose]: () => Promise.resolve() };
    const port = `${freePort()}`;
    await using dev = startDev(place, { ...fresh.settings, GREETING_HTTP_PORT: port });
    await dev.ready();
    const url = `http://127.0.0.1:${port}`;
    assert.equal((await call(`${url}/readyz`)).status, 200);
    assert.ok(dev.output.text.includes(`  greeting      ${url}   (${url}/openapi.json)`));
    assert.match(dev.output.text, /^greeting: applied 0001_greetings/m);
    await dev.pressCtrlC();
    await dev.exited;
  },
});

Deno.test("a service that is added by one folder and one line is compiled, checked and kept apart", async () => {
  const reaching = 'export { relay } from "@kenri/entitlement/relay.ts";\n';
  await using project = await withGreeting({ "reaching.ts": reaching });
  await task(project, ["services"]);
  await task(project, ["graph:check"]);
  const lint = await project.run(["lint", "greeting"]);
  assert.match(lint.said, /"greeting" must not import from "entitlement"/);
  assert.equal(lint.said.match(/^error\[/gm)?.length, 1, lint.said);
  await Deno.remove(`${project.path}/greeting/reaching.ts`);
  const checked = ["greeting", "services.ts", "migrations", "ops", "tools/*.ts", "tools/dev"];
  const check = await project.run(["check", "--quiet", ...checked, "tools/load", "tools/servers"]);
  assert.equal(check.code, 0, check.said);
  assert.match(await task(project, ["compile:check"]), /Compile .*\/greeting\.js to /);
});

Deno.test("a forgotten `deno task services` is reported", async () => {
  await using project = await withGreeting();
  const { code, said } = await project.run(["task", "--quiet", "services", "--check"]);
  assert.equal(code, 1);
  for (const file of ["greeting/derived.ts", "tools/provision/services.ts", "deno.json"]) {
    assert.ok(said.includes(`${file} is not up to date: run "deno task services"`), said);
  }
});
