import { EncryptJWT, jwtDecrypt } from "jose";
import { Buffer } from "node:buffer";

// What the gateway gives to browsers to keep, encrypted so that they can neither read nor change it.
// The first key seals, and all of them open, so keys can be rotated while sessions last. Each sealed
// text has one purpose, and is worthless for the others.

export type Purpose = "session" | "login" | "state";

const header = { alg: "dir", enc: "A256GCM" } as const;

export class Seals {
  readonly #keys: Uint8Array[];

  constructor(keys: Uint8Array[]) {
    this.#keys = keys;
  }

  async seal(purpose: Purpose, content: object, endsAtMs: number): Promise<string> {
    const [key] = this.#keys;
    if (!key) throw new Error("There is no key to seal with");
    return await new EncryptJWT({ ...content })
      .setProtectedHeader(header)
      .setAudience(purpose)
      .setExpirationTime(Math.floor(endsAtMs / 1_000))
      .encrypt(key);
  }

  // Undefined if it was changed, has expired, or was sealed for another purpose or with another key.
  async open(purpose: Purpose, sealed: string): Promise<unknown> {
    if (!isCanonical(sealed)) return undefined;
    for (const key of this.#keys) {
      try {
        const { payload } = await jwtDecrypt(sealed, key, {
          keyManagementAlgorithms: [header.alg],
          contentEncryptionAlgorithms: [header.enc],
          audience: purpose,
          requiredClaims: ["exp"],
        });
        return payload;
      } catch { /* perhaps another key opens it */ }
    }
    return undefined;
  }
}

// The last character of a part may have bits that belong to no byte. Decoders ignore them, so the same
// content could be written in several ways.
function isCanonical(sealed: string): boolean {
  return sealed.split(".").every((part) =>
    Buffer.from(part, "base64url").toString("base64url") === part
  );
}
