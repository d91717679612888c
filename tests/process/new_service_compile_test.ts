// A service that is added by one folder and one line is bundled, compiled, checked and kept apart from
// the others. (The mutants can't run this, because no bundle is made of their copies of the project.)
import assert from "node:assert/strict";
import { greeting, task, withService } from "./planted_services.ts";

Deno.test("a service that is added by one folder and one line is compiled, checked and kept apart", async () => {
  const reaching = 'export { relay } from "@kenri/entitlement/relay.ts";\n';
  await using project = await withService("greeting", { ...greeting, "reaching.ts": reaching });
  await task(project, ["services"]);
  await task(project, ["graph:check"]);
  const lint = await project.run(["lint", "greeting"]);
  assert.match(lint.said, /"greeting" must not import from "entitlement"/);
  assert.equal(lint.said.match(/^error\[/gm)?.length, 1, lint.said);
  await Deno.remove(`${project.path}/greeting/reaching.ts`);
  const checked = ["greeting", "services.ts", "migrations", "ops", "tools"];
  const check = await project.run(["check", "--quiet", ...checked]);
  assert.equal(check.code, 0, check.said);
  assert.match(await task(project, ["compile:check"]), /Compile .*\/greeting\.js to /);
});
