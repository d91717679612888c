// deno task sbom: dist/kenri.cdx.json, the bill of materials as CycloneDX 1.6. Packages that the
// services use are "required"; those that only tests, benchmarks and checks use are "excluded".
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readLicences } from "./licences.ts";
import { programs } from "../services.ts";
import { idOf, lockFiles, type Package, pathOf, readPackages } from "./packages.ts";

interface Component {
  type: "library" | "platform";
  "bom-ref": string;
  group?: string;
  name: string;
  version: string;
  scope: "required" | "excluded";
  licenses: ({ license: { id: string } } | { expression: string })[];
  hashes?: { alg: "SHA-512"; content: string }[];
  purl: string;
  properties?: { name: string; value: string }[];
}

export interface Bom {
  bomFormat: "CycloneDX";
  specVersion: "1.6";
  serialNumber: string;
  version: 1;
  metadata: {
    component: { type: "application"; "bom-ref": string; name: string; version: string };
  };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

export async function makeBom(): Promise<Bom> {
  const [packages, licences, roots] = await Promise.all([
    readPackages(),
    readLicences(),
    packagesOfPrograms(),
  ]);
  const shipped = reachable(roots, packages);
  const { version } = JSON.parse(await Deno.readTextFile(pathOf("shared/deno.json")));
  const kenri = `pkg:generic/kenri@${version}`;
  const deno = await denoComponent();
  const components = [...packages].map(([id, one]) =>
    componentOf(one, licences.get(one.name) ?? "NOASSERTION", shipped.has(id))
  );
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: await serialNumber(),
    version: 1,
    metadata: { component: { type: "application", "bom-ref": kenri, name: "kenri", version } },
    components: [deno, ...components],
    dependencies: [
      { ref: kenri, dependsOn: [deno.purl, ...roots.map((id) => purlOf(packages.get(id)))].sort() },
      { ref: deno.purl, dependsOn: [] },
      ...packages.values().map((one) => ({
        ref: purlOf(one),
        dependsOn: one.dependencies.map((id) => purlOf(packages.get(id))).sort(),
      })),
    ],
  };
}

/** The packages that their sources import. */
async function packagesOfPrograms(): Promise<string[]> {
  const found = await Promise.all(
    Object.values(programs).map(async ({ main }) => {
      const { stdout } = await new Deno.Command(Deno.execPath(), {
        args: ["info", "--json", pathOf(main)],
        stderr: "null",
      }).output();
      const { modules }: { modules: { npmPackage?: string }[] } = JSON.parse(
        new TextDecoder().decode(stdout),
      );
      return modules.flatMap(({ npmPackage }) => npmPackage ? [idOf(npmPackage)] : []);
    }),
  );
  return [...new Set(found.flat())].sort();
}

function reachable(roots: string[], packages: Map<string, Package>): Set<string> {
  const found = new Set<string>();
  const queue = [...roots];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    queue.push(...packages.get(id)?.dependencies ?? []);
  }
  return found;
}

function componentOf(one: Package, licence: string, isShipped: boolean): Component {
  const [name = "", group] = one.name.split("/").reverse();
  const [alg = "", hash = ""] = one.integrity.split(/-(.*)/s);
  if (alg !== "sha512") throw new Error(`${one.name} has a hash by ${alg}`);
  return {
    type: "library",
    "bom-ref": purlOf(one),
    ...(group ? { group } : {}),
    name,
    version: one.version,
    scope: isShipped ? "required" : "excluded",
    licenses: [licence.includes(" ") ? { expression: licence } : { license: { id: licence } }],
    hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }],
    purl: purlOf(one),
    properties: one.locks.map((file) => ({ name: "kenri:lock", value: file })),
  };
}

export function purlOf(one: Package | undefined): string {
  if (!one) throw new Error("A package needs another that no lock has");
  return `pkg:npm/${one.name.replace("@", "%40")}@${one.version}`;
}

/** The version is that of the Dockerfile. Its hashes are those of the image. */
async function denoComponent(): Promise<Component> {
  const dockerfile = await Deno.readTextFile(pathOf("Dockerfile"));
  const [, version = ""] = /^ARG DENO_IMAGE=.*-([\d.]+)$/m.exec(dockerfile) ?? [];
  const purl = `pkg:generic/deno@${version}`;
  const licenses = [{ license: { id: "MIT" } }];
  return {
    type: "platform",
    "bom-ref": purl,
    name: "deno",
    version,
    scope: "required",
    licenses,
    purl,
  };
}

/** The serial number is the same for the same lock files. */
async function serialNumber(): Promise<string> {
  const hash = createHash("sha256");
  for (const file of lockFiles) hash.update(await Deno.readTextFile(pathOf(file)));
  const hex = hash.digest("hex");
  const uuid = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hex)?.slice(1) ?? [];
  const [a, b, c, d, e] = uuid;
  return `urn:uuid:${a}-${b}-8${c}-8${d}-${e}`;
}

if (import.meta.main) {
  const bom = await makeBom();
  await Deno.mkdir(pathOf("dist"), { recursive: true });
  await Deno.writeTextFile(pathOf("dist/kenri.cdx.json"), `${JSON.stringify(bom, null, 2)}\n`);
  const shipped = bom.components.filter(({ scope }) => scope === "required").length;
  console.log(
    `dist/kenri.cdx.json: ${bom.components.length} components, ${shipped} of them shipped`,
  );
}
