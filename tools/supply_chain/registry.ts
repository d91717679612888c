/** The registry in npm's settings. */
export function registry(): string {
  const args = ["config", "get", "registry"];
  const { stdout } = new Deno.Command("npm", { args, stderr: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim().replace(/\/$/, "");
}
