/** Where packages come from, as npm itself is told. */
export function registry(): string {
  return (Deno.env.get("NPM_CONFIG_REGISTRY") ?? "https://registry.npmjs.org").replace(/\/$/, "");
}
