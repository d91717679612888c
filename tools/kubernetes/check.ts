// deno task kubernetes:check: checks that Kubernetes accepts the manifests in docs/kubernetes.
//
// Each manifest becomes the argument of its model's constructor. The type checker then finds names
// of fields that do not exist, which a schema lets pass, and the model's own schema finds values
// out of range.
//
// This folder has a lock of its own, because nothing else needs the 18 MB of models.
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const folder = new URL("../../docs/kubernetes/", import.meta.url);

async function readManifests(): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
  const checks: string[] = [];
  for (const name of names) {
    for (const document of parseAllDocuments(await Deno.readTextFile(new URL(name, folder)))) {
      if (document.errors.length > 0) throw new Error(`${name}: ${document.errors[0]?.message}`);
      checks.push(checkOf(name, document.toJS()));
    }
  }
  return checks;
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
}

function checkOf(file: string, manifest: Manifest): string {
  const { apiVersion, kind, ...rest } = manifest;
  const title = JSON.stringify(`${file}: ${kind} ${rest.metadata.name}`);
  return `{
  const { ${kind} } = await import("kubernetes-models/${apiVersion}/${kind}");
  check(${title}, new ${kind}(${JSON.stringify(rest, null, 2)}));
}`;
}

const program = (checks: string[]) => `
function check(title: string, model: { validate(): void }) {
  try {
    model.validate();
    console.log(title);
  } catch (error) {
    console.error(title + ": " + (error as Error).message);
    Deno.exitCode = 1;
  }
}
${checks.join("\n")}
`;

const file = await Deno.makeTempFile({ prefix: "kenri-kubernetes-", suffix: ".ts" });
try {
  await Deno.writeTextFile(file, program(await readManifests()));
  const config = fileURLToPath(new URL("deno.json", import.meta.url));
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--check", "--allow-read", "--allow-env", "--config", config, file],
    env: { NODE_NO_WARNINGS: "1" },
    stdin: "null",
  }).spawn().status;
  Deno.exitCode = code;
} finally {
  await Deno.remove(file);
}
