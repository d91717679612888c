const script = 'kill -STOP "$0" && sleep "$1"; kill -CONT "$0"';

/** Another process ends the freeze, so that nothing stays frozen if this process is killed. */
export async function freeze(pid: number, forMs: number): Promise<void> {
  const args = ["-c", script, String(pid), String(forMs / 1_000)];
  await new Deno.Command("sh", { args, stdout: "null", stderr: "null" }).output();
}
