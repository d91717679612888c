// Secrets that stand out. Tests and chaos runs use them where a real one would be, and afterwards look
// for them in all that was said.

export const plantedPassword = "planted-Pa55word";
export const plantedToken = "planted-T0ken";
/** Idempotency keys of tests begin so. */
export const plantedKey = "planted-Idempotency";

/** The same servers, asked for by a user with the planted password. */
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

const credentials = { "a password": plantedPassword, "a token": plantedToken };
const all = { ...credentials, "an idempotency key": plantedKey };

/** Operators who look for an event by its key are told it whole, but never how to get in. */
export function leaksIn(where: string, text: string): Leak[] {
  const secrets = /(^|\/)debug\b/.test(where) ? credentials : all;
  return text.split("\n").flatMap((line, i) =>
    Object.entries(secrets).filter(([, secret]) => line.includes(secret)).map(([what, secret]) => {
      const at = line.indexOf(secret);
      const around = `${line.slice(Math.max(0, at - 100), at)}…${line.slice(at + secret.length)}`;
      return { what, where: `${where}:${i + 1}`, context: hidden(around).slice(0, 240) };
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
  return Object.values(all).reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
}
