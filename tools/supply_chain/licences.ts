// deno task licences: writes docs/licences.md, the licence of every package according to the
// registry.
import { pathOf, readPackages } from "./packages.ts";
import { registry } from "./registry.ts";

const page = pathOf("docs/licences.md");

/** Each of these allows shipping and running Kenri without publishing anything. */
export const allowed = [
  ...["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0"],
  ...["Unlicense", "CC0-1.0", "0BSD", "Python-2.0"],
];

/** Each part of "(A AND B)" has to be allowed, and one of "(A OR B)". */
export function isAllowed(expression: string): boolean {
  const plain = expression.replaceAll(/[()]/g, "").trim();
  if (plain.includes(" OR ")) return plain.split(" OR ").some(isAllowed);
  return plain.split(" AND ").every((licence) => allowed.includes(licence.trim()));
}

/** The licences by the name of the package, as on the page. */
export async function readLicences(): Promise<Map<string, string>> {
  const sections = (await Deno.readTextFile(page)).split(/^## /m).slice(1);
  return new Map(sections.flatMap((section) => {
    const [licence = "", ...lines] = section.split("\n");
    return [...lines.join("\n").matchAll(/`([^`]+)`/g)].map(([, name = ""]): [string, string] => [
      name,
      licence.trim(),
    ]);
  }));
}

const opening = `# Licences

Of every package that the lock files name: those that the services run with, and those of tests,
benchmarks and checks, which are not shipped. Written by \`deno task licences\`; a test compares the
page with the lock files and with what is installed, and refuses a licence that is not on the list
in \`tools/supply_chain/licences.ts\`.
`;

async function write(): Promise<void> {
  const packages = (await readPackages()).values().toArray();
  const licences = new Map<string, string>();
  const queue = Map.groupBy(packages, ({ name }) => name).entries();
  const ask = async () => {
    for (const [name, [one]] of queue) {
      licences.set(name, await licenceOf(name, one?.version ?? ""));
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  const sections = [...Map.groupBy([...licences], ([, licence]) => licence)].sort()
    .map(([licence, named]) => {
      const names = named.map(([name]) => `\`${name}\``).sort().join(", ");
      return `\n## ${licence}\n\n${names}\n`;
    });
  await Deno.writeTextFile(page, `${opening}${sections.join("")}`);
}

async function licenceOf(name: string, version: string): Promise<string> {
  const answer = await fetch(`${registry()}/${name}/${version}`);
  const { license, licenses: [older] = [] } = await answer.json();
  return license ?? older?.type ?? "none";
}

if (import.meta.main) {
  await write();
  console.log("docs/licences.md is written; deno fmt puts its lines in order");
}
