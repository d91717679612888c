import { createHash } from "node:crypto";
import type { User } from "./child.ts";
import { runAs } from "./other_user.ts";

/** 192 random bits, in characters that a url need not escape. */
export function newPassword(): string {
  return crypto.getRandomValues(new Uint8Array(24)).toHex();
}

/** The password of another role than the administrator. The same at each start, and of no use elsewhere. */
export function passwordOf(role: string, ofAdministrator: string): string {
  return createHash("sha256").update(`${ofAdministrator}:${role}`).digest("hex");
}

/** A file in PostgreSQL's data folder, which only its user can read. */
const file = "kenri-password";

/** Undefined when the data knows no password yet: it is new, or of a version that let all users in. */
export async function keptPassword(
  dataDir: string,
  user: User | undefined,
): Promise<string | undefined> {
  const { success, stdout } = await runAs(user, "cat", [`${dataDir}/${file}`]);
  return success && stdout.trim() !== "" ? stdout.trim() : undefined;
}

/** Called after PostgreSQL knows the password, so the file always contains a valid one. */
export async function keepPassword(
  dataDir: string,
  user: User | undefined,
  password: string,
): Promise<void> {
  await writeSecret(`${dataDir}/${file}`, user, password);
}

export async function writeSecret(
  path: string,
  user: User | undefined,
  text: string,
): Promise<void> {
  const script = 'umask 077 && cat >"$1.new" && mv -f "$1.new" "$1"';
  const { success, stderr } = await runAs(user, "sh", ["-c", script, "keep", path], text);
  if (!success) throw new Error(`"${path}" can't be written: ${stderr.trim()}`);
}
