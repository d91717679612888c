// How the settings of a service become its permissions. privileges_test.ts tries what they do not
// permit.
import assert from "node:assert/strict";
import { servicePermissions } from "../../tools/services.ts";
import { settingsOf } from "../support/entitlement.ts";
import { all, outcomesFor } from "./permissions.ts";
import type { Settings } from "../../tools/servers/service_process.ts";

const settings: Settings = {
  ...settingsOf("postgres://kenri:secret@127.0.0.1:15432/entitlement"),
  NATS_URL: "nats://127.0.0.1:14222,nats://localhost:14223",
  ENTITLEMENT_HTTP_PORT: "18080",
};

const outcomes = (attempts: string[][], more: Settings = {}) =>
  outcomesFor("entitlement", { ...settings, ...more }, attempts);

Deno.test("it may connect to the addresses in its settings, as they are written there", async () => {
  const attempts = [
    ["connect", "127.0.0.1", "15432"],
    ["connect", "127.0.0.1", "14222"],
    ["connect", "localhost", "14223"],
  ];
  assert.deepEqual(await outcomes(attempts), all(attempts, "ConnectionRefused"));
  const byAddress = [["connect", "127.0.0.1", "14223"]];
  assert.deepEqual(await outcomes(byAddress), all(byAddress, "NotCapable"));
  assert.deepEqual(await outcomes([["listen", "127.0.0.1", "18080"], ["hostname"]]), [
    "listen 127.0.0.1 18080: allowed",
    "hostname: allowed",
  ]);
});

Deno.test("a port that the system chooses permits no other port", async () => {
  const attempts = [["connect", "127.0.0.1", "22"], ["listen", "127.0.0.1", "18081"]];
  const results = await outcomes(attempts, { ENTITLEMENT_HTTP_PORT: "0" });
  assert.deepEqual(results, all(attempts, "NotCapable"));
});

Deno.test("it may connect to the host of its issuer's keys, and to no other because of it", async () => {
  const issuer = {
    ACCESS_JWT_ISSUER: "https://issuer.example",
    ACCESS_JWT_AUDIENCE: "kenri",
    ACCESS_JWT_JWKS_URL: "http://127.0.0.1:18443/keys",
  };
  const open = [["connect", "127.0.0.1", "18443"]];
  const closed = [["connect", "127.0.0.1", "18444"], ["fetch", "https://issuer.example/"]];
  const results = await outcomes([...open, ...closed], issuer);
  assert.deepEqual(results, [...all(open, "ConnectionRefused"), ...all(closed, "NotCapable")]);
  const flagsWith = (url: string) =>
    servicePermissions(
      "entitlement",
      (name) => ({ ...settings, ...issuer, ACCESS_JWT_JWKS_URL: url })[name],
    );
  assert.match(flagsWith("https://issuer.example/keys")[0] ?? "", /,issuer\.example:443$/);
  assert.match(flagsWith("http://localhost/keys")[0] ?? "", /,localhost:80$/);
  assert.match(flagsWith("https://[fe80::1]:8443/keys")[0] ?? "", /,\[fe80::1\]:8443$/);
});

Deno.test("it may read the certificate files in its settings, and only read them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "kenri-files-" });
  for (const name of ["ca", "other"]) await Deno.writeTextFile(`${folder}/${name}`, "");
  const more = {
    ENTITLEMENT_DATABASE_URL: `${settings["ENTITLEMENT_DATABASE_URL"]}?sslmode=verify-full`,
    ENTITLEMENT_DATABASE_TLS_CA: `${folder}/ca`,
  };
  const attempts = [
    ["readFile", `${folder}/ca`],
    ["writeFile", `${folder}/ca`],
    ["readFile", `${folder}/other`],
    ["readFolder", folder],
  ];
  const [open = [], ...closed] = attempts;
  assert.deepEqual(await outcomes(attempts, more), [
    ...all([open], "allowed"),
    ...all(closed, "NotCapable"),
  ]);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("it may read no environment variable but its settings", async () => {
  const attempts = [
    ...["PATH", "SECRET", "ENTITLEMENT_SECRET", "SHELL", "NATS_URLS"].map((
      name,
    ) => ["getEnv", name]),
    ["setEnv", "PATH"],
    ["setEnv", "SECRET"],
  ];
  assert.deepEqual(await outcomes(attempts), all(attempts, "NotCapable"));
  const own = [["getEnv", "NATS_URL"], ["getEnv", "HOSTNAME"], ["getEnv", "PGPASSWORD"]];
  assert.deepEqual(await outcomes(own), all(own, "allowed"));
  const listed = Object.keys(settings).sort().join();
  assert.deepEqual(await outcomes([["allEnv"]]), [`allEnv: ${listed}`]);
});

Deno.test("an IPv6 address gives permission for one address, like any other", async () => {
  const more = {
    ENTITLEMENT_HTTP_HOST: "::1",
    ENTITLEMENT_DATABASE_URL: "postgres://kenri@[::1]/entitlement",
    NATS_URL: "nats://[fe80::1]",
  };
  const flags = servicePermissions("entitlement", (name) => ({ ...settings, ...more })[name]);
  assert.equal(flags[0], "--allow-net=[::1]:18080,[::1]:5432,[fe80::1]:4222");
  const results = await outcomes([["listen", "::1", "18080"], ["listen", "::", "18080"]], more);
  assert.deepEqual(results, ["listen ::1 18080: allowed", "listen :: 18080: NotCapable"]);
});

Deno.test("every flag lists names, and none is open-ended", () => {
  const flags = servicePermissions("entitlement", (name) => settings[name]);
  for (const flag of flags) {
    const [name, list = ""] = flag.split("=");
    assert.ok(
      ["--allow-net", "--allow-env", "--ignore-env", "--allow-sys"].includes(name ?? ""),
      flag,
    );
    const entry = name === "--allow-net"
      ? /^[\w.-]+:\d+$/
      : name === "--allow-sys"
      ? /^hostname$/
      : /^\w+$/;
    for (const one of list.split(",")) assert.match(one, entry, flag);
  }
});
