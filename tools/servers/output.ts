/** Runs a program to its end. If it fails, the last line that it printed becomes the error. */
export async function output(program: string, args: string[], cwd: string): Promise<void> {
  const { success, code, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (success) return;
  const complaint = new TextDecoder().decode(stderr).trim().split("\n").at(-1);
  throw new Error(`${program} exited with ${code}: ${complaint}`);
}
