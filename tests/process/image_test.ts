// In the image a program is started with flags that somebody wrote down, and not with those
// computed from its settings. If the two differ, it ends and prints the flags that it needs.
import assert from "node:assert/strict";
import { mainFile, type ProgramName } from "../../tools/services.ts";
import { settingsOf } from "../support/entitlement.ts";
import { entryPoint, imageCommand } from "./image.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { root } from "../../tools/root.ts";

const database = "postgres://kenri:pa55word@127.0.0.1:9/kenri";
const settings: Settings = {
  ...settingsOf(database),
  ENTITLEMENT_HTTP_PORT: "0",
  NATS_URL: "nats://127.0.0.1:9",
  NOTIFICATION_DATABASE_URL: database,
};

// Starts from the sources, because the flags for a bundle do not matter here.
async function start(name: ProgramName, flags: string[], settings: Settings) {
  const [run = "", ...fixed] = entryPoint().filter((flag) => !/^--(no-config|no-npm)/.test(flag));
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [run, ...fixed, ...flags, mainFile(name)],
    env: { ...settings, NO_COLOR: "1" },
    stdin: "null",
  }).output();
  return { code, said: [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("") };
}

const folder = root.replace(/\/$/, "");
const flagsFor = (name: ProgramName, settings: Settings) =>
  imageCommand(name, (variable) => settings[variable], folder).slice(0, -1);

for (const name of ["entitlement", "migrate"] as const) {
  Deno.test(`${name} ends when its settings name other servers than its flags, and prints the right flags`, async () => {
    const moved = Object.fromEntries(
      Object.entries(settings).map(([key, value]) => [key, value.replace(/@127.0.0.1/, "@db")]),
    );
    for (const flags of [[], flagsFor(name, settings)]) {
      const { code, said } = await start(name, flags, moved);
      assert.equal(code, 1);
      assert.match(said, new RegExp(`permissions that ${name} was not started with`));
      assert.ok(said.includes(`Start it with ${flagsFor(name, moved).join(" ")} (`), said);
      assert.doesNotMatch(said, /NotCapable|pa55word|Uncaught/);
    }
  });

  Deno.test(`${name} ends when it may not read a file in its settings, and prints the missing flag`, async () => {
    const more = {
      ...settings,
      ENTITLEMENT_DATABASE_URL: `${database}?sslmode=verify-full`,
      ENTITLEMENT_DATABASE_TLS_CA: "/etc/kenri/ca.crt",
    };
    const { code, said } = await start(name, flagsFor(name, settings), more);
    assert.equal(code, 1);
    assert.match(said, /Start it with --allow-net=\S+ --allow-read=.*\/etc\/kenri\/ca\.crt \(/);
  });
}

Deno.test("wrong settings are reported before missing flags", async () => {
  const { code, said } = await start("entitlement", [], { ...settings, NATS_URL: "nats:" });
  assert.equal(code, 1);
  assert.match(said, /NATS_URL must be/);
  assert.doesNotMatch(said, /not started with/);
});

Deno.test("a program without permission for its environment asks for it", async () => {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", mainFile("entitlement")],
    env: settings,
  }).output();
  assert.equal(code, 1);
  assert.match(new TextDecoder().decode(stdout), /Start it with --allow-env=ACCESS_BURST,/);
});

Deno.test("permissions prints the flags for the command of a container, and --all those for all programs", async () => {
  const say = async (...args: string[]) => {
    const file = `${root}tools/permissions.ts`;
    const { code, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-env", file, ...args],
      env: settings,
    }).output();
    return { code, lines: new TextDecoder().decode(stdout).trim().split("\n") };
  };
  const read = (name: string) => settings[name];
  assert.deepEqual((await say("migrate")).lines, imageCommand("migrate", read).slice(0, -1));
  const { lines } = await say("entitlement", "--all");
  assert.deepEqual(lines.slice(0, 1), imageCommand("entitlement", read).slice(0, -1));
  assert.deepEqual(lines.map((line) => line.split("=")[0]), [
    ...["--allow-net", "--allow-env", "--ignore-env", "--allow-sys"],
  ]);
  assert.equal((await say("nothing")).code, 2);
});
