import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import plugin from "./architecture.ts";

const root = new URL("../../", import.meta.url);

/** Each is [path of the file, its source]. */
type Sources = [path: string, source: string][];

const lines = (count: number) => "a();\n".repeat(count);

const rules: Record<string, { refuses: Sources; accepts: Sources }> = {
  "members-apart": {
    refuses: [
      ["entitlement/app.ts", 'import { f } from "../notification/list_notifications.ts";'],
      ["entitlement/app.ts", 'import type { T } from "@kenri/notification/inbox.ts";'],
      ["notification/channels/log.ts", 'import { f } from "../../entitlement/outbox.ts";'],
      ["notification/app.ts", 'export { f } from "@kenri/entitlement";'],
      ["notification/app.ts", 'const m = await import("@kenri/entitlement/app.ts");'],
      ["notification/app.ts", "const m = await import(`../entitlement/app.ts`);"],
      ["notification/app.ts", 'type T = import("@kenri/entitlement/app.ts").T;'],
      ["shared/queue/worker.ts", 'import { f } from "@kenri/entitlement/app.ts";'],
      [
        "proto/entitlement/v1/entitlement_event_test.ts",
        'import { log } from "@kenri/shared/process/log.ts";',
      ],
      ["entitlement/relay_test.ts", 'import { servers } from "../tests/servers.ts";'],
      ["shared/postgres/postgres.ts", 'import { start } from "../../tools/servers/start.ts";'],
      ["shared/postgres/postgres.ts", 'import { f } from "../../elsewhere/f.ts";'],
      ["ops/status.ts", 'import { f } from "@kenri/entitlement/operators/status.ts";'],
      ["ops/status.ts", 'import type { T } from "@kenri/entitlement/operators/status.ts";'],
      ["ops/status.ts", 'const m = await import("@kenri/notification/operators/status.ts");'],
      ["ops/settings.ts", 'import { devSettings } from "../tools/dev/settings.ts";'],
      ["entitlement/main.ts", 'import type { T } from "@kenri/ops/routes.ts";'],
      ["entitlement/main.ts", 'import * as services from "@kenri/services.ts";'],
      ["shared/console/layout.tsx", 'import * as services from "@kenri/services.ts";'],
    ],
    accepts: [
      ["entitlement/app.ts", 'import { f } from "./outbox.ts";'],
      ["entitlement/app.ts", 'import { f } from "@kenri/shared/queue/worker.ts";'],
      ["entitlement/app.ts", 'import { S } from "@kenri/proto/entitlement/encode.ts";'],
      ["notification/channels/log.ts", 'import { f } from "../notification.ts";'],
      ["shared/nats/link.ts", 'import { connect } from "nats";'],
      ["ops/ops.ts", 'import * as programs from "@kenri/services.ts";'],
      ["ops/steps.ts", 'import { time } from "@kenri/shared/ops/text.ts";'],
      ["tests/flow_test.ts", 'import { f } from "../notification/app.ts";'],
      ["tools/dev.ts", 'import { main } from "@kenri/entitlement/main.ts";'],
    ],
  },
  "workspace-imports": {
    refuses: [
      ["entitlement/app.ts", 'import { f } from "../shared/queue/worker.ts";'],
      ["notification/channels/log.ts", 'import { log } from "../../shared/process/log.ts";'],
      ["ops/status.ts", 'import { age } from "../shared/ops/text.ts";'],
    ],
    accepts: [
      ["entitlement/app.ts", 'import { f } from "@kenri/shared/queue/worker.ts";'],
      ["notification/channels/log.ts", 'import { f } from "../notification.ts";'],
      ["tests/flow_test.ts", 'import { f } from "../shared/queue/worker.ts";'],
    ],
  },
  "tools-without-tests": {
    refuses: [
      ["tools/chaos/clients.ts", 'import { grant } from "../../tests/support/changes.ts";'],
      ["tools/bench/bench.ts", 'import type { T } from "../../tests/support/changes.ts";'],
    ],
    accepts: [
      ["tools/chaos/clients.ts", 'import { grant } from "../load/change_request.ts";'],
      ["tests/flow_test.ts", 'import { f } from "./support/api.ts";'],
    ],
  },
  "no-barrels": {
    refuses: [
      ["shared/index.ts", "export const a = 1;"],
      ["tests/utils.ts", "export const a = 1;"],
      ["shared/postgres/postgres.ts", 'export * from "./batch.ts";'],
    ],
    accepts: [["shared/postgres/postgres.ts", "export const a = 1;"]],
  },
  "environment-in-config": {
    refuses: [
      ["shared/postgres/postgres.ts", 'Deno.env.get("PGHOST");'],
      ["shared/postgres/postgres.ts", 'Deno["env"].get("PGHOST");'],
      ["shared/postgres/postgres.ts", "const { env } = Deno;"],
      ["entitlement/main.ts", "globalThis.Deno.env.toObject();"],
      ["entitlement/main.ts", 'process.env["HOME"];'],
      ["notification/channels/log.ts", 'import process from "node:process";'],
    ],
    accepts: [
      ["shared/process/settings.ts", "Deno.env.toObject();"],
      ["entitlement/main.ts", "settings.env; Deno.exit(1);"],
      ["tests/flow_test.ts", "Deno.env.toObject();"],
      ["tools/dev.ts", "Deno.env.toObject();"],
    ],
  },
  "only-log-prints": {
    refuses: [
      ["entitlement/main.ts", 'console.error("a");'],
      ["entitlement/main.ts", 'console["log"]("a");'],
      ["entitlement/main.ts", "const { warn } = console;"],
      ["shared/queue/worker.ts", "Deno.stdout.writable;"],
      ["notification/channels/log.ts", "Deno.stderr.writeSync(bytes);"],
      ["ops/ops.ts", 'console.log("a");'],
    ],
    accepts: [
      ["shared/process/terminal.ts", 'console.log("a");'],
      ["shared/process/log.ts", 'console.error("a");'],
      ["shared/queue/worker.ts", 'options.console.error("a"); log.info("a");'],
      ["tests/flow_test.ts", 'console.log("a");'],
      ["tools/dev.ts", 'console.log("a");'],
    ],
  },
  "file-urls": {
    refuses: [
      ["tools/dev.ts", 'read(new URL("migrations", import.meta.url).pathname);'],
      ["tools/dev.ts", "const root = new URL(import.meta.url); read(root.pathname);"],
      ["tools/dev.ts", 'const root = new URL("..", here); watch(`${root.pathname}/a`);'],
      ["tools/dev.ts", 'new URL(import.meta.resolve("./a.ts"))["pathname"];'],
      ["tools/dev.ts", 'const { pathname } = new URL("a", import.meta.url);'],
      ["shared/files.ts", "function watch(root: URL) { return decodeURI(root.pathname); }"],
      ["shared/files.ts", "const a = new URL(text); function f(a: URL) { return a.pathname; }"],
      ["tests/flow_test.ts", "new URL(path, `file://${root}`);"],
      ["tests/flow_test.ts", 'run("file://" + path);'],
      ["docs/examples/sell.ts", 'read(import.meta.url.replace("file://", ""));'],
      ["docs/examples/sell.ts", "read(import.meta.url.slice(7));"],
    ],
    accepts: [
      ["tools/dev.ts", 'read(fileURLToPath(new URL("migrations", import.meta.url)));'],
      ["tools/dev.ts", 'read(new URL("migrations", import.meta.url));'],
      ["tools/dev.ts", "fileURLToPath(import.meta.url); pathToFileURL(path).href;"],
      ["tools/dev.ts", "import('file:///etc/passwd');"],
      ["shared/http/app.ts", "new URL(request.url).pathname;"],
      ["shared/http/app.ts", "const url = ok ? new URL(a) : undefined; isPath(url.pathname);"],
      ["shared/http/app.ts", "const url = new URL(text); if (url.pathname) serve(url.pathname);"],
      [
        "shared/http/app.ts",
        "const a = (url) => url; function f() { const url = new URL(b); url.pathname; }",
      ],
      ["shared/http/app.ts", "function f(url: URL) { url.pathname = `/${database}`; }"],
      ["tests/flow_test.ts", "const { pathname, host } = new URL(ownerUrl);"],
    ],
  },
  "file-size": {
    refuses: [["tests/flow_test.ts", lines(251)]],
    accepts: [["tests/flow_test.ts", lines(250)]],
  },
  "function-size": {
    refuses: [
      ["tools/dev.ts", `function run() {\n${lines(69)}}`],
      ["tools/dev.ts", `const run = async () => {\n${lines(69)}};`],
      ["tools/dev.ts", `class Run {\n  start() {\n${lines(69)}}\n}`],
    ],
    accepts: [
      ["tools/dev.ts", `function run() {\n${lines(68)}}`],
      ["tools/dev.ts", `class Run {\n${"  start() {}\n".repeat(80)}}`],
    ],
  },
  "sql-parameters": {
    refuses: [
      ["entitlement/outbox.ts", "query(`select a from b where c = ${c}`);"],
      ["entitlement/outbox.ts", "query(`\n  -- claim\n  update a set b = '${b}'`);"],
      ["entitlement/outbox.ts", "query(`with x as (select 1) select a from x limit ${n}`);"],
      ["notification/list_notifications.ts", "query(`delete from a where b < ${b}`);"],
    ],
    accepts: [
      ["entitlement/outbox.ts", "query(`select a from b where c = $1`, [c]);"],
      ["entitlement/outbox.ts", "query(`select ${columns} from ${table} where c = $1`, [c]);"],
      ["entitlement/outbox.ts", "sql`select a from b where c = ${c}`;"],
      ["entitlement/outbox.ts", "log.info(`select failed, attempt = ${n}`);"],
      ["tests/flow_test.ts", "query(`select a from b where c = ${c}`);"],
    ],
  },
};

for (const [rule, { refuses, accepts }] of Object.entries(rules)) {
  Deno.test(`${rule} refuses`, () => {
    for (const [path, source] of refuses) {
      assert.deepEqual(reported(path, source), [`kenri/${rule}`], `${path}: ${source}`);
    }
  });

  Deno.test(`${rule} accepts`, () => {
    for (const [path, source] of accepts) assert.deepEqual(reported(path, source), [], source);
  });
}

Deno.test("every rule is tested and says what to do instead", () => {
  assert.deepEqual(Object.keys(rules).sort(), Object.keys(plugin.rules).sort());
  for (const [path, source] of Object.values(rules).flatMap((rule) => rule.refuses)) {
    for (const { hint } of lint(path, source)) assert.ok(hint, source);
  }
});

function reported(path: string, source: string): string[] {
  return [...new Set(lint(path, source).map((diagnostic) => diagnostic.id))];
}

function lint(path: string, source: string): Deno.lint.Diagnostic[] {
  return Deno.lint.runPlugin(plugin, fileURLToPath(new URL(path, root)), source);
}
