// Made-up services, each with the least that one needs, in a copy of the project.
import assert from "node:assert/strict";
import { type PlantedProject, projectWith } from "./planted_project.ts";

/** It keeps greetings in tables and publishes them. */
export const greeting: Record<string, string> = {
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
  "config.ts": `import {
  database,
  type DatabaseConfig,
  nats,
  type NatsConfig,
  service,
  type ServiceConfig,
  worker,
} from "@kenri/shared/process/service_settings.ts";
import { environment, parseSettings } from "@kenri/shared/process/settings.ts";
import type { WorkerOptions } from "@kenri/shared/queue/worker_settings.ts";
import { z } from "zod";
import { program } from "./program.ts";
import { streamSettings } from "./stream_settings.ts";


export const schema = z.object({
  ...database.settings("greeting"),
  ...worker.settings("greeting.outbox"),
  ...worker.settings("greeting.letters"),
  ...streamSettings,
  ...nats.settings(),
  ...service.settings("greeting", program.port),
}).check(
  ...database.checks("greeting"),
  ...nats.checks(),
  ...worker.checks("greeting.outbox"),
  ...worker.checks("greeting.letters"),
  ...service.checks("greeting"),
);

export interface Config
  extends ServiceConfig, DatabaseConfig, NatsConfig {
  outbox: WorkerOptions;
  letters: WorkerOptions;
}

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  return {
    ...service.config("greeting", settings),
    ...database.config("greeting", settings),
    ...nats.config(settings),
    outbox: worker.config("greeting.outbox", settings),
    letters: worker.config("greeting.letters", settings),
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

/** It has neither a database nor NATS, and connects to a server of its own. */
export const gate: Record<string, string> = {
  "program.ts": `import type { Service } from "@kenri/shared/process/program.ts";
import { settings } from "./derived.ts";

export const program: Service = {
  name: "gate",
  port: 8098,
  servers: ["GATE_CACHE_URL"],
  dev: { settings: { GATE_CACHE_URL: "redis://127.0.0.1" } },
  settings,
};
`,
  "config.ts": `import { serverUrl } from "@kenri/shared/process/setting_kinds.ts";
import { service, type ServiceConfig } from "@kenri/shared/process/service_settings.ts";
import { environment, parseSettings } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import { program } from "./program.ts";

export const schema = z.object({
  "gate.cache.url": serverUrl("redis:"),
  ...service.settings("gate", program.port),
}).check(...service.checks("gate"));

export type Config = ServiceConfig;

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  return service.config("gate", parseSettings(schema, read));
}
`,
  "main.ts": `import { createApp } from "@kenri/shared/http/app.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { openAccess } from "@kenri/shared/process/service_parts.ts";
import { readConfig } from "./config.ts";
import { program } from "./program.ts";

await runService(program, readConfig, (config, { log }) => {
  const authenticator = openAccess(program, config, log);
  const app = createApp({ title: "Kenri gate", checks: {}, authenticator, log });
  return { app, loops: [], close: () => Promise.resolve() };
});
`,
};

/** The project with this service in a folder of its own, and a line in services.ts. */
export function withService(name: string, folder: Record<string, string>): Promise<PlantedProject> {
  const files = Object.entries(folder).map(([file, text]) => [`${name}/${file}`, () => text]);
  const line = `export { program as ${name} } from "./${name}/program.ts";\n`;
  return projectWith({ ...Object.fromEntries(files), "services.ts": (list) => list + line });
}

/** What the task prints. */
export async function task(
  project: PlantedProject,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, said } = await project.run(["task", "--quiet", ...args], env);
  assert.equal(code, 0, said);
  return said;
}
