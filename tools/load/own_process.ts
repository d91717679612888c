// The load runs in a process of its own. In the measuring process it would have to wait for other work.

/** Runs the script, which reads the input as JSON and prints the result as JSON. */
export async function inOwnProcess<Result>(
  script: string,
  host: string,
  input: unknown,
): Promise<Result> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", `--allow-net=${host}`, script],
    stdin: "piped", // arguments can be seen by other users, and the input may have a password
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const output = child.output();
  await new Blob([JSON.stringify(input)]).stream().pipeTo(child.stdin);
  const { success, stdout } = await output;
  if (!success) throw new Error(`The load on ${host} failed; its error is above`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** For such a script. It does not wait for what is still unanswered. */
export async function answerCaller<Input>(
  work: (input: Input) => Promise<unknown>,
): Promise<never> {
  const input: Input = await new Response(Deno.stdin.readable).json();
  console.log(JSON.stringify(await work(input)));
  Deno.exit(0);
}
