// Runs `deno task ops` like an operator.
import { keep } from "../../tools/servers/evidence.ts";
import { root } from "../../tools/root.ts";

export interface Output {
  code: number;
  output: string;
  errors: string;
}

interface Urls {
  entitlement: { url: string };
  notification: { url: string };
}

export async function ops(
  { entitlement, notification }: Urls,
  ...args: string[]
): Promise<Output> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-remote", "--allow-net", "--allow-env"],
      `${root}ops/ops.ts`,
      ...[...args, "--entitlement", entitlement.url, "--notification", notification.url],
    ],
    env: { NO_COLOR: "1", USER: "kim" },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  keep("debug.ops", `${text(stdout)}${text(stderr)}`);
  return { code, output: text(stdout), errors: text(stderr) };
}
