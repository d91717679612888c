// Secrets that are easy to find. Tests and chaos runs use them in place of real ones, and afterwards search
// all output for them.

const plantedStart = "planted-Pa55word";
const variable = "KENRI_TEST_PASSWORD";

/**
 * The password of the servers that a run of tests or of chaos starts, and of all roles on them. Random,
 * because every user of the machine can ask for the servers; all files of a run get the same one.
 */
export const plantedPassword = Deno.env.get(variable) ??
  `${plantedStart}-${crypto.getRandomValues(new Uint8Array(16)).toHex()}`;
export const plantedSettings = { [variable]: plantedPassword };
/** The beginning of all idempotency keys of tests. */
export const plantedKey = "planted-Idempotency";
/** What orders of tests send. */
export const plantedPayload = "planted-Payload";
/** A key of 32 bytes, written as base64url, that encrypts the secrets of endpoints. */
export const plantedSecretKey = `${plantedStart}-${"x".repeat(25)}A`;

/** The same servers, with the user and the planted password where a url has none. */
export function withPlanted(urls: string, user: string): string {
  return urls.split(",").map((one) => {
    const url = new URL(one);
    url.username ||= user;
    url.password ||= plantedPassword;
    return url.href;
  }).join();
}

export interface Leak {
  what: string;
  where: string;
  context: string; // without the secret
}

const credentials = {
  "a password": new RegExp(`${plantedStart}[\\w-]*`),
  "a token": /kenri_[0-9a-f]{64}/, // as `deno task token` makes it
  "a secret of an endpoint": /whsec_[\w+/=-]{20,}/,
  "a JWT": /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}/,
};
const all = {
  ...credentials,
  "an idempotency key": new RegExp(plantedKey),
  "a payload": new RegExp(plantedPayload),
};
const { "a secret of an endpoint": _, ...besideSecrets } = all;

/**
 * Operators who search an event by its key may see the key, but no credential. The answer that creates
 * a secret shows it.
 */
export function leaksIn(where: string, text: string): Leak[] {
  const secrets = /(^|\/)debug\b/.test(where)
    ? credentials
    : /(^|\/)secrets\b/.test(where)
    ? besideSecrets
    : all;
  return text.split("\n").flatMap((line, i) =>
    Object.entries(secrets).flatMap(([what, secret]): Leak[] => {
      const at = line.search(secret);
      if (at < 0) return [];
      const context = hidden(line.slice(Math.max(0, at - 100), at + 400)).slice(0, 240);
      return [{ what, where: `${where}:${i + 1}`, context }];
    })
  );
}

export async function leaksInFolder(folder: string): Promise<Leak[]> {
  const leaks: Leak[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    leaks.push(...leaksIn(name, await Deno.readTextFile(`${folder}/${name}`)));
  }
  return leaks;
}

function hidden(text: string): string {
  return Object.values(all).reduce(
    (rest, secret) => rest.replaceAll(new RegExp(secret, "g"), "…"),
    text,
  );
}
