import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Buffer } from "node:buffer";

// The secrets that webhooks are signed with. The database holds them encrypted, each bound to its
// endpoint, so a ciphertext that was copied to another endpoint can't be decrypted.

const cipher = "aes-256-gcm";
const secretBytes = 32; // Standard Webhooks: from 24 to 64
const nonceBytes = 12;
const tagBytes = 16;

export const secretPrefix = "whsec_";

export function newSecret(): string {
  return secretPrefix + randomBytes(secretBytes).toString("base64");
}

// Nonce, ciphertext and tag, in this order. The first key encrypts.
export function encryptSecret(
  [key]: Uint8Array[],
  endpointId: string,
  secret: string,
): Uint8Array {
  if (key === undefined) throw new Error("There is no key to encrypt secrets with");
  const nonce = randomBytes(nonceBytes);
  const encrypting = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes });
  encrypting.setAAD(aadOf(endpointId));
  const ciphertext = [encrypting.update(secret, "utf8"), encrypting.final()];
  return new Uint8Array(Buffer.concat([nonce, ...ciphertext, encrypting.getAuthTag()]));
}

// Tries each key, because the secret may have been encrypted before the keys were rotated.
export function decryptSecret(
  keys: Uint8Array[],
  endpointId: string,
  ciphertext: Uint8Array,
): string {
  for (const key of keys) {
    const secret = decryptWith(key, endpointId, ciphertext);
    if (secret !== undefined) return secret;
  }
  throw new Error("No secret-key decrypts the secret of the endpoint");
}

function decryptWith(key: Uint8Array, endpointId: string, given: Uint8Array): string | undefined {
  const end = given.length - tagBytes;
  try {
    const nonce = given.subarray(0, nonceBytes);
    const decrypting = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes });
    decrypting.setAAD(aadOf(endpointId));
    decrypting.setAuthTag(given.subarray(end));
    const secret = [decrypting.update(given.subarray(nonceBytes, end)), decrypting.final()];
    return Buffer.concat(secret).toString("utf8");
  } catch {
    return undefined;
  }
}

function aadOf(endpointId: string): Buffer {
  return Buffer.from(endpointId.toLowerCase());
}
