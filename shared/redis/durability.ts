import { StartRefused } from "../process/start_refused.ts";

// What a server can lose, and whether it can confirm that a change is on its disk.

type Ask = (args: string[]) => Promise<unknown>;

const confirming = [7, 2]; // WAITAOF is there since this version

// Throws StartRefused if a confirmation is wanted that the server can't give. Otherwise it says in one
// line what the server can lose when it ends.
export async function checkDurability(
  ask: Ask,
  confirmedBy: string | undefined, // the setting that wants confirmations
  warn: (line: string) => void,
): Promise<void> {
  const info = `${await ask(["INFO", "server"])}${await ask(["INFO", "persistence"])}`;
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? "of unknown version";
  const hasAof = /^aof_enabled:1/m.test(info);
  if (confirmedBy && isOlder(version)) {
    const wanted = confirming.join(".");
    throw new StartRefused(`${confirmedBy} needs Redis ${wanted} or newer, and this is ${version}`);
  }
  if (confirmedBy && !hasAof) {
    throw new StartRefused(`${confirmedBy} needs appendonly to be yes in Redis`);
  }
  if (!hasAof) {
    return warn("Redis has no append-only file, so all its data is lost when it ends");
  }
  const policy = await ask(["CONFIG", "GET", "appendfsync"]).catch(() => undefined);
  const [, known] = /appendfsync\W+(always|everysec|no)/.exec(JSON.stringify(policy) ?? "") ?? [];
  if (confirmedBy && known === "no") {
    throw new StartRefused(`${confirmedBy} needs appendfsync to be always or everysec in Redis`);
  }
  if (confirmedBy || known === "always") return;
  warn(
    known === "no"
      ? "Redis leaves it to the system when its file is on the disk, so it can lose half a minute"
      : "Redis writes its file to the disk once a second, so it can lose the last second",
  );
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [wanted = 0, wantedMinor = 0] = confirming;
  return !(major > wanted || (major === wanted && minor >= wantedMinor));
}
