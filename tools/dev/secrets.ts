// The secrets that two programs share, or that stored rows depend on. They are made once and kept beside
// the data, in a file that nobody else can read.
import { writeSecret } from "../servers/password.ts";
import type { DataFolder } from "./data_folder.ts";
import type { Settings } from "./settings.ts";

export async function keptSecrets(
  folder: Pick<DataFolder, "secrets"> | undefined,
): Promise<Settings> {
  if (!folder) return tokens(); // a key that is lost at the end would make given databases unreadable
  const kept = await Deno.readTextFile(folder.secrets).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  });
  // A file of an earlier version lacks what the services of this one need beyond it.
  const secrets = { ...newSecrets(), ...JSON.parse(kept ?? "{}") };
  if (JSON.stringify(secrets) === kept) return secrets;
  await writeSecret(folder.secrets, undefined, JSON.stringify(secrets));
  return secrets;
}

export function newSecrets(): Settings {
  return { ...tokens(), NOTIFICATION_ENDPOINTS_SECRET_KEY: randomText() };
}

function tokens(): Settings {
  const token = randomText();
  return {
    SENDER_TOKEN: token,
    NOTIFICATION_SENDER_TOKEN: token,
    GATEWAY_SESSION_KEYS: randomText(),
    GATEWAY_CLIENT_SECRET: randomText(),
  };
}

function randomText(): string {
  const alphabet = "base64url" as const;
  return crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet, omitPadding: true });
}
