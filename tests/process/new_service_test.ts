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
import { gate, greeting, task, withService } from "./planted_services.ts";

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
  await using project = await withService("greeting", greeting);
  await task(project, ["services"]);
  await task(project, ["services", "--check"]);
  const image = await Deno.readTextFile(`${project.path}/Dockerfile`);
  assert.match(image, /^COPY greeting greeting$/m);
  assert.match(image, /--allow-env=ACCESS_\*,(\w+_\*,)*GREETING_\*,/);
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

Deno.test("a service needs no database and no NATS, and may connect to the servers that it names", async () => {
  await using project = await withService("gate", gate);
  await task(project, ["services"]);
  const settings = { GATE_CACHE_URL: "redis://cache", GATE_HTTP_PORT: "0" };
  const args = ["task", "--quiet", "gate"];
  await using service = await startProgram("gate", args, settings, project.path);
  assert.equal((await call(`${service.url}/readyz`)).status, 200);
  assert.equal(await service.stop(), 0);

  const { said } = await project.run(
    ["run", "--allow-env", "tools/permissions.ts", "gate"],
    { ...settings, NATS_URL: "nats://nats" },
  );
  assert.equal(said, "--allow-net=127.0.0.1:0,cache:6379\n");
  const check = await project.run([
    "check",
    "--quiet",
    "gate",
    "services.ts",
    "migrations",
    "tools",
  ]);
  assert.equal(check.code, 0, check.said);
  assert.doesNotMatch(
    await Deno.readTextFile(`${project.path}/tools/provision/services.ts`),
    /\bgate\b/,
  );
});

Deno.test({
  name: "dev starts a service that is added by one folder and one line, with the others",
  ignore: Deno.build.os !== "linux", // as in tests/project/dev_test.ts
  fn: async () => {
    await using project = await withService("greeting", greeting);
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

Deno.test("a forgotten `deno task services` is reported", async () => {
  await using project = await withService("greeting", greeting);
  const { code, said } = await project.run(["task", "--quiet", "services", "--check"]);
  assert.equal(code, 1);
  for (const file of ["greeting/derived.ts", "tools/provision/services.ts", "deno.json"]) {
    assert.ok(said.includes(`${file} is not up to date: run "deno task services"`), said);
  }
});

Deno.test("a service with the name or the port of another one is refused", async () => {
  const wrong: [from: string, to: string, problem: RegExp][] = [
    ['name: "gate"', 'name: "gates"', /The service "gate" has the name "gates"/],
    ["port: 8098", "port: 8081", /(gate|notification) and (gate|notification) have the same port/],
  ];
  for (const [from, to, problem] of wrong) {
    const program = (gate["program.ts"] ?? "").replace(from, to);
    await using project = await withService("gate", { ...gate, "program.ts": program });
    const { code, said } = await project.run(["task", "--quiet", "services"]);
    assert.equal(code, 1);
    assert.match(said, problem);
  }
});
