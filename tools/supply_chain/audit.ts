// deno task audit:packages: known advisories about the exact versions of all lock files. Deno's own audit
// reads only one lock file and fails if the registry does not answer; this reports that and succeeds,
// unless --required is given.
import { type Package, readPackages } from "./packages.ts";
import { registry } from "./registry.ts";

interface Advisory {
  id: number;
  url: string;
  title: string;
  severity: "info" | "low" | "moderate" | "high" | "critical";
  vulnerable_versions: string;
}

type Advisories = Record<string, Advisory[]>;

export async function audit(
  packages: Package[],
  say: (line: string) => void,
  isRequired: boolean,
): Promise<boolean> {
  const found = await askRegistry(packages);
  if (typeof found === "string") {
    say(`Nothing was checked: ${found}`);
    return !isRequired;
  }
  let isGood = true;
  for (const [name, advisories] of Object.entries(found)) {
    for (const { severity, title, vulnerable_versions, url } of advisories) {
      say(`${severity}: ${name} ${vulnerable_versions}: ${title} (${url})`);
      if (severity === "high" || severity === "critical") isGood = false;
    }
  }
  const count = Object.values(found).flat().length;
  say(`${packages.length} packages, ${count} advisories${isGood ? "" : ", some of them high"}`);
  return isGood;
}

const withinMs = 30_000;

/** Returns the advisories, or the reason why the registry did not answer. */
async function askRegistry(packages: Package[]): Promise<Advisories | string> {
  const versions = Map.groupBy(packages, ({ name }) => name);
  const asked = Object.fromEntries(
    [...versions].map(([name, all]) => [name, all.map(({ version }) => version)]),
  );
  try {
    const answer = await fetch(`${registry()}/-/npm/v1/security/advisories/bulk`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
      signal: AbortSignal.timeout(withinMs),
    });
    if (answer.ok) return await answer.json();
    await answer.body?.cancel();
    return `the registry answers ${answer.status} to questions for advisories`;
  } catch (error) {
    return `the registry can't be asked (${(error as Error).message})`;
  }
}

if (import.meta.main) {
  const packages = (await readPackages()).values().toArray();
  const isRequired = Deno.args.includes("--required");
  Deno.exit(await audit(packages, console.log, isRequired) ? 0 : 1);
}
