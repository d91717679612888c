import { hasConsole } from "../../shared/operators/looks.ts";
import type { Service } from "../../shared/process/program.ts";

interface Listening extends Pick<Service, "name" | "dev" | "looks"> {
  url: string;
}

interface Others {
  webhooks: string;
  issuer: string | undefined;
  urlsFile: string | undefined;
}

export function banner(services: Listening[], { webhooks, issuer, urlsFile }: Others): string {
  const width = Math.max(...services.map(({ name }) => name.length));
  const lines = services.map(({ name, url, dev }) =>
    `  ${name.padEnd(width)}  ${url}   (${url}${dev?.page ?? "/openapi.json"})`
  );
  const commands = services.flatMap(({ url, dev }) => dev?.tryOut ? `    ${dev.tryOut(url)}` : []);
  const consoles = services.filter(({ looks }) => hasConsole(looks)).map(({ url }) =>
    `    ${url}/console`
  );
  const servers = urlsFile === undefined ? "" : `
  URLs and passwords of the servers are in a file that only you can read:

    (. ${quoted(urlsFile)}; psql ${services[0]?.name})
`;
  return `
${lines.join("\n")}

  ${webhooks}
${logins(services, issuer)}
  Try it out:

${commands.join("\n")}

  Backlog, dead letters and single events, as \`deno task ops status\` shows them too:

${consoles.join("\n")}
${servers}
  Ctrl-C stops everything.
`;
}

function logins(services: Listening[], issuer: string | undefined): string {
  const page = services.find(({ name }) => name === "gateway")?.url;
  if (page === undefined || issuer === undefined) return "";
  return `
  Log in as ann, bob or kim, without a password, and see what is yours:

    ${page}

  The accounts are at the issuer ${issuer}, where you can log out everywhere.
`;
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
