// The client fits the service, and its example does what it claims, on Deno and, if it is
// installed, on Node.
import assert from "node:assert/strict";
import { startEntitlement } from "../support/entitlement.ts";
import { root } from "../../tools/root.ts";

const example = `${root}docs/examples/sell.ts`;

const story = `sold: ACTIVE, version 1
sold again, as after a crash: ACTIVE, version 1, replayed
taken back: REVOKED, version 2
listed: book is REVOKED
`;

Deno.test("the example grants, repeats, revokes and lists, with no permission but the network", async () => {
  await using kenri = await startEntitlement();
  const { host } = new URL(kenri.url);
  const args = ["run", "--no-prompt", `--allow-net=${host}`, example, kenri.url];
  assert.equal(await output(Deno.execPath(), args), story);
});

Deno.test("the client's types are those of the service, and the code of the README has no type error", async () => {
  const check = (...args: string[]) => output(Deno.execPath(), ["check", "--quiet", ...args], root);
  await check("tests/project/client_types.ts");
  await check("--doc-only", "README.md");
});

// Undefined if only Deno is installed.
const node = await output("node", ["--version"]).catch(() => undefined);

Deno.test({
  name: "the same example runs on Node, with the package that deno task client:pack makes",
  ignore: node === undefined || Number(/^v(\d+)/.exec(node)?.[1]) < 20,
  fn: async () => {
    await using kenri = await startEntitlement();
    const folder = await Deno.makeTempDir();
    try {
      const archive = `${folder}/client.tgz`;
      await output(Deno.execPath(), ["task", "client:pack", "--output", archive]);
      const installed = `${folder}/node_modules/@kenri/client`;
      await Deno.mkdir(installed, { recursive: true });
      await output("tar", ["-xzf", archive, "-C", installed, "--strip-components=1"]);
      await Deno.stat(`${installed}/client.d.ts`);

      // In the folder, so that Node finds the package.
      const program = `${folder}/sell.mjs`;
      const plain = ["bundle", "--quiet", "--external", "@kenri/client", "--output", program];
      await output(Deno.execPath(), [...plain, example]);
      assert.equal(await output("node", [program, kenri.url]), story);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function output(program: string, args: string[], cwd = "."): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
