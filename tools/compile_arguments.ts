// The arguments with which `deno compile` makes the binary of a service.
import { type ServiceName, servicePermissions, unstableFlags, v8Flags } from "./services.ts";

export interface Build {
  bundles: string; // From the sources, all of node_modules would be embedded.
  output: string;
  target: string;
  read: (name: string) => string | undefined;
}

export function compileArguments(
  service: ServiceName,
  { bundles, output, target, read }: Build,
): string[] {
  return [
    ...["compile", "--no-config", "--no-remote", "--no-npm", "--no-prompt"],
    ...[...unstableFlags, v8Flags, ...servicePermissions(service, read)],
    ...["--target", target, "--output", output, `${bundles}/${service}.js`],
  ];
}
