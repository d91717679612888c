import { StartRefused } from "../process/start_refused.ts";

// What a server can lose, and whether it can confirm that a change is on its disk.

type Ask = (args: string[]) => Promise<unknown>;

export interface Durability {
  version: string | null;
  append_only: boolean; // whether it keeps a file of all changes
  fsync: "always" | "everysec" | "no" | null; // null if it does not tell
}

const confirming = [7, 2]; // WAITAOF is there since this version

export async function readDurability(ask: Ask): Promise<Durability> {
  const info = `${await ask(["INFO", "server"])}${await ask(["INFO", "persistence"])}`;
  const policy = await ask(["CONFIG", "GET", "appendfsync"]).catch(() => undefined);
  const [, fsync] = /appendfsync\W+(always|everysec|no)/.exec(JSON.stringify(policy) ?? "") ?? [];
  return {
    version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? null,
    append_only: /^aof_enabled:1/m.test(info),
    fsync: (fsync ?? null) as Durability["fsync"],
  };
}

// Undefined if it loses nothing that it has answered.
export function canLose({ append_only, fsync }: Durability): string | undefined {
  if (!append_only) {
    return "Redis has no append-only file, so all its data is lost when it ends";
  }
  if (fsync === "always") return undefined;
  return fsync === "no"
    ? "Redis leaves it to the system when its file is on the disk, so it can lose half a minute"
    : "Redis writes its file to the disk once a second, so it can lose the last second";
}

// Throws StartRefused if a confirmation is wanted that the server can't give. Otherwise it says in one
// line what the server can lose when it ends.
export async function checkDurability(
  ask: Ask,
  confirmedBy: string | undefined, // the setting that wants confirmations
  warn: (line: string) => void,
): Promise<void> {
  const durability = await readDurability(ask);
  const version = durability.version ?? "of unknown version";
  if (confirmedBy && isOlder(version)) {
    const wanted = confirming.join(".");
    throw new StartRefused(`${confirmedBy} needs Redis ${wanted} or newer, and this is ${version}`);
  }
  if (confirmedBy && !durability.append_only) {
    throw new StartRefused(`${confirmedBy} needs appendonly to be yes in Redis`);
  }
  if (confirmedBy && durability.fsync === "no") {
    throw new StartRefused(`${confirmedBy} needs appendfsync to be always or everysec in Redis`);
  }
  const lost = canLose(durability);
  if (lost !== undefined && !confirmedBy) warn(lost);
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [wanted = 0, wantedMinor = 0] = confirming;
  return !(major > wanted || (major === wanted && minor >= wantedMinor));
}
