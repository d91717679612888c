// However a service is started, it can use only its own servers, and can't start a program, load
// code or read a file.
import assert from "node:assert/strict";
import * as services from "../../services.ts";
import { environmentName, needsOf, type Service } from "../../shared/process/program.ts";
import { compileArguments } from "../../tools/compile_arguments.ts";
import {
  programs,
  type ServiceName,
  serviceNames,
  servicePermissions,
} from "../../tools/services.ts";
import { all, outcomesFor, ways } from "./permissions.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const settings: Settings = Object.assign(
  {
    NATS_URL: "nats://127.0.0.1:14222",
    REDIS_URL: "redis://127.0.0.1:15379",
    SENDER_TOKEN: "s".repeat(32),
    ...ofGateway(),
  },
  ...Object.values<Service>(services).map(({ name, dev }): Settings => ({
    ...dev?.settings,
    [`${environmentName(name)}_DATABASE_URL`]: `postgres://kenri:secret@127.0.0.1:15432/${name}`,
    [`${environmentName(name)}_HTTP_PORT`]: "18080",
  })),
);

const refused = [
  ["run", "sh"],
  ["run", Deno.execPath()],
  ["run", "/bin/true"],
  ["runFromNode", "/bin/true"],
  ["kill"],
  ["ffi", "libc.so.6"],
  ["libraryFromNode", "libc.so.6"],
  ["osRelease"],
  ["loadavg"],
  ["interfaces"],
  ["uid"],
  ["inspector", "19229"],
  ["readFile", `${root}deno.json`],
  ["readFile", `${root}entitlement/main.ts`],
  ["readFile", "/etc/passwd"],
  ["readFile", "/proc/self/environ"],
  ["readFromNode", "/etc/passwd"],
  ["readFromWorker", "/etc/passwd"],
  ["readFolder", "/"],
  ["readFolder", root],
  ["changeFolder", "/"],
  ["writeFile", "/tmp/kenri-probe"],
  ["writeFile", `${root}kenri-probe`],
  ["remove", "/tmp/kenri-probe"],
  ["makeTempFile"],
  ["link", "/tmp/kenri-probe"],
  ["sqlite", "/tmp/kenri-probe"],
  ["heapSnapshot", "/tmp/kenri-probe"],
  ["unixSocket", "/run/kenri.sock"],
  ["getEnv", "PATH"],
  ["getEnv", "SECRET"],
  ["envFromNode", "PATH"],
];
const otherServers = [
  ["connect", "127.0.0.1", "22"],
  ["connect", "127.0.0.1", "15433"],
  ["connect", "localhost", "15432"],
  ["connect", "::1", "15432"],
  ["connect", "127.0.0.2", "15432"],
  ["connect", "example.org", "443"],
  ["connect", "169.254.169.254", "80"],
  ["listen", "0.0.0.0", "18080"],
  ["listen", "127.0.0.1", "18081"],
  ["listen", "localhost", "0"],
  ["fetch", "http://example.org/"],
  ["resolve", "example.org"],
];
// What leads inward, for a service that may connect to any public address.
const inward = [
  ["connect", "127.0.0.2", "15432"],
  ["connect", "::1", "15432"],
  ["connect", "::ffff:127.0.0.2", "15432"],
  ["connect", "10.0.0.1", "443"],
  ["connect", "169.254.169.254", "80"],
  ["fetch", "http://169.254.169.254/"],
  ["fetch", "http://[::ffff:10.0.0.1]/"],
  ["listen", "0.0.0.0", "18080"],
  ["listen", "127.0.0.2", "18080"],
];
const imports = [
  ["import", "https://deno.land/std@0.224.0/assert/mod.ts"],
  ["import", "https://deno.land/x/oak/mod.ts"],
  ["import", "http://127.0.0.1:15432/mod.ts"],
  ["import", "file:///tmp/kenri-probe.ts"],
  ["import", "npm:left-pad@1.3.0"],
  ["import", "jsr:@std/assert@1.0.0"],
];
const kinds = ["read", "write", "env", "run", "sys", "ffi"];
// Nothing listens there, so an attempt that is permitted is refused by the machine.
function serversOf(service: ServiceName): string[][] {
  const { net } = needsOf(programs[service].program, (name) => settings[name], "");
  const [, ...addresses] = net.map((address) => address.split(":"));
  const { outside }: Service = services[service];
  return (outside ? servers : addresses).map((address) => ["connect", ...address]);
}
const servers = [["127.0.0.1", "15432"], ["127.0.0.1", "14222"]];
const allowed = [["listen", "127.0.0.1", "18080"], ["hostname"]];

function ofGateway(): Settings {
  const dependencies = ["ACCOUNT", "ENTITLEMENT", "NOTIFICATION", "MATCHMAKING"];
  return {
    GATEWAY_CLIENT_ID: "kenri",
    GATEWAY_ISSUER: "http://127.0.0.1:15801",
    GATEWAY_ISSUER_SERVERS: "http://127.0.0.1:15802,http://localhost:15803",
    GATEWAY_PUBLIC_URL: "http://127.0.0.1:18080",
    GATEWAY_SESSION_KEYS: "k".repeat(43),
    ...Object.fromEntries(
      dependencies.map((name, at) => [`GATEWAY_${name}_URL`, `http://127.0.0.1:${15804 + at}`]),
    ),
  };
}

for (const service of serviceNames) {
  const { outside, database, usesRedis }: Service = services[service];
  const notUsed = [...database ? [] : ["15432"], ...usesRedis ? [] : ["15379"]];
  const ofOthers = outside ? [] : notUsed.map((port) => ["connect", "127.0.0.1", port]);
  const servers = serversOf(service);
  const asked = [...kinds, ...outside ? [] : ["net"]].map((name) => ["request", name]);
  const own = [...allowed, ["getEnv", `${environmentName(service)}_HTTP_PORT`]];
  const closed = [...refused, ...outside ? inward : otherServers, ...ofOthers];
  for (const [how, way] of Object.entries(ways)) {
    Deno.test(`${service}, started ${how}, may do only its own work`, async () => {
      const attempts = [...closed, ...imports, ...asked, ...servers, ...own];
      assert.deepEqual(await outcomesFor(service, settings, attempts, way), [
        ...all(closed, "NotCapable"),
        ...all(imports, "TypeError"),
        ...all(asked, "denied"),
        ...all(servers, "ConnectionRefused"),
        ...all(own, "allowed"),
      ]);
    });
  }

  Deno.test(`${service}, compiled, gets the same permissions and no others`, () => {
    const read = (name: string) => settings[name];
    const flags = compileArguments(service, { read, bundles: "", output: "", target: "" });
    const gives = (flag: string) => /^--(allow|ignore|deny)-|^-[A-Za-z]|^--unstable/.test(flag);
    assert.deepEqual(flags.filter(gives), [
      "--unstable-cron",
      "--unstable-no-legacy-abort",
      ...servicePermissions(service, read),
    ]);
  });

  // On this signal Deno would open its debugger for everybody on the machine.
  Deno.test(`${service} does not open a debugger on a signal`, async () => {
    const port = { [`${environmentName(service)}_HTTP_PORT`]: "0" };
    await using process = await startService(service, { ...settings, ...port });
    process.signal("SIGUSR1");
    await until("it says so", () => process.log.some(({ message }) => /SIGUSR1/.test(message)));
    await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port: 9229 }), {
      name: "ConnectionRefused",
    });
    assert.equal(await process.stop(), 0);
  });
}
