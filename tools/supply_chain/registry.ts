/** Where packages come from, as npm is told by its settings. */
export function registry(): string {
  const args = ["config", "get", "registry"];
  const { stdout } = new Deno.Command("npm", { args, stderr: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim().replace(/\/$/, "");
}
