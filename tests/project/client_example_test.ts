// The client fits the service, and its examples do what they claim, on Deno and, if it is
// installed, on Node.
import assert from "node:assert/strict";
import { startEntitlement } from "../support/entitlement.ts";
import { root } from "../../tools/root.ts";

const examples: Record<string, string> = {
  "sell.ts": `sold: ACTIVE, version 1
sold again, as after a crash: ACTIVE, version 1, replayed
taken back: REVOKED, version 2
listed: book is REVOKED
`,
  "points.ts": `reserved: 100 points, PENDING
reserved again, as after a crash: replayed
two seconds later: DONE, not early
80 points: paid, 20 left
80 more: the balance is lower than point_amount
a gift for next year: CANCELLED
listed: SPEND -80, balance 20
listed: GRANT 100, balance 100
`,
};
const path = (name: string) => `${root}docs/examples/${name}`;

Deno.test("each example does what it claims, with no permission but the network", async () => {
  await using kenri = await startEntitlement();
  const { host } = new URL(kenri.url);
  for (const [name, story] of Object.entries(examples)) {
    const args = ["run", "--no-prompt", `--allow-net=${host}`, path(name), kenri.url];
    assert.equal(await output(Deno.execPath(), args), story);
  }
});

Deno.test("the client's types are those of the service, and the code of the README has no type error", async () => {
  const check = (...args: string[]) => output(Deno.execPath(), ["check", "--quiet", ...args], root);
  await check("tests/project/client_types.ts");
  await check("--doc-only", "README.md");
});

// Undefined if only Deno is installed.
const node = await output("node", ["--version"]).catch(() => undefined);

Deno.test({
  name: "the same examples run on Node, with the package that deno task client:pack makes",
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

      for (const [name, story] of Object.entries(examples)) {
        const program = `${folder}/${name}.mjs`; // in the folder, so that Node finds the package
        const plain = ["bundle", "--quiet", "--external", "@kenri/client", "--output", program];
        await output(Deno.execPath(), [...plain, path(name)]);
        assert.equal(await output("node", [program, kenri.url]), story);
      }
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
