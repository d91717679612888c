import { hasConsole } from "../../shared/operators/looks.ts";
import type { Service } from "../../shared/process/program.ts";

interface Listening extends Pick<Service, "name" | "dev" | "looks"> {
  url: string;
}

export function banner(
  services: Listening[],
  webhooks: string,
  urlsFile: string | undefined,
): string {
  const width = Math.max(...services.map(({ name }) => name.length));
  const lines = services.map(({ name, url, dev }) =>
    `  ${name.padEnd(width)}  ${url}   (${url}${dev?.page ?? "/openapi.json"})`
  );
  const commands = services.flatMap(({ url, dev }) => dev?.tryOut ? `    ${dev.tryOut(url)}` : []);
  const consoles = services.filter(({ looks }) => hasConsole(looks)).map(({ url }) =>
    `    ${url}/console`
  );
  const servers = urlsFile === undefined ? "" : `
  URLs and passwords of PostgreSQL and NATS are in a file that only you can read:

    (. ${quoted(urlsFile)}; psql ${services[0]?.name})
`;
  return `
${lines.join("\n")}

  ${webhooks}

  Try it out:

${commands.join("\n")}

  Backlog, dead letters and single events, as \`deno task ops status\` shows them too:

${consoles.join("\n")}
${servers}
  Ctrl-C stops everything.
`;
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
