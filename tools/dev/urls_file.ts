import { writeSecret } from "../servers/password.ts";
import { withDatabase } from "../../migrations/program.ts";
import * as services from "../../services.ts";
import { databaseUrlNames, type Settings } from "./settings.ts";

const urlNames = [
  "NATS_URL",
  "REDIS_URL",
  ...withDatabase(services).map(databaseUrlNames).flatMap(({ service, owner }) => [service, owner]),
];

/**
 * A file for a developer's shell that nobody else can read. psql reads the last names: on its command
 * line every user of the machine could see a password.
 */
export async function writeUrls(
  path: string,
  settings: Settings,
  administrator: string | undefined,
): Promise<void> {
  const named = urlNames.flatMap((name): [string, string][] =>
    settings[name] === undefined ? [] : [[name, settings[name]]]
  );
  const lines = [...named, ...(administrator ? psqlSettings(administrator) : [])]
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`);
  await writeSecret(path, undefined, lines.join(""));
}

function psqlSettings(administrator: string): [string, string][] {
  const { hostname, port, username, password } = new URL(administrator);
  return [["PGHOST", hostname], ["PGPORT", port], ["PGUSER", username], ["PGPASSWORD", password]];
}
