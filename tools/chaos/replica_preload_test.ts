import assert from "node:assert/strict";

const script = `
  const say = () => Deno.stdout.writeSync(new TextEncoder().encode(
    JSON.stringify({ now: Date.now(), date: new Date().getTime(), old: new Date(5).getTime() }) + "\\n"));
  say();
  const signal = Deno.args[0];
  Deno.kill(Deno.pid, signal);
  await new Promise((arrived) => setTimeout(arrived, 200));
  say();
`;

for (const [signal, hours] of [["SIGUSR2", 1], ["SIGWINCH", -1]] as const) {
  Deno.test(`the clock of a service jumps by ${hours} hours with ${signal}`, async () => {
    const [before, after] = await linesOf(script, signal);
    assert.ok(jumpIn(before, "now") === 0, "it is true until then");
    assert.equal(jumpIn(after, "now"), hours);
    assert.equal(jumpIn(after, "date"), hours);
    assert.equal(after?.["old"], 5, "a date that is given is left alone");
    assert.ok(Number(after?.["pid"]) > 0, "the line names its process");
  });
}

/** The jump in whole hours, compared with the true time in the line itself. */
function jumpIn(line: Record<string, number> | undefined, name: string): number {
  return Math.round((Number(line?.[name]) - Number(line?.["at"])) / 3_600_000);
}

async function linesOf(script: string, signal: string): Promise<Record<string, number>[]> {
  const preload = new URL("replica_preload.ts", import.meta.url).href;
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, script);
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-config", `--preload=${preload}`, "--allow-run", file, signal],
  }).output();
  await Deno.remove(file);
  return new TextDecoder().decode(stdout).trim().split("\n").map((line) => JSON.parse(line));
}
