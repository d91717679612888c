/** Runs a program to its end and returns what it printed. If it fails, the last line of its errors is the error. */
export async function output(program: string, args: string[], cwd: string): Promise<string> {
  const { success, code, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (success) return new TextDecoder().decode(stdout);
  const complaint = new TextDecoder().decode(stderr).trim().split("\n").at(-1);
  throw new Error(`${program} exited with ${code}: ${complaint}`);
}
