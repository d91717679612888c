import { EncryptJWT, jwtDecrypt } from "jose";
import { hkdfSync, randomBytes } from "node:crypto";
import { z } from "zod";
import type { ApiError } from "../http/errors.ts";
import { type Caller, scopes } from "./caller.ts";
import { badCredential } from "./refusals.ts";

// What a browser keeps of a person who has signed in. Cookies go to every port of a host, so it is
// never the credential: it is sealed, opens the console of one service and nothing else, and ends with
// the credential, at the latest after a working day. The services store nothing.

const maxHours = 8;

// The caller of a session. A JWT can't be looked up later, so its session holds its claims.
const contentSchema = z.union([
  z.object({ digest: z.string() }),
  z.object({ issuer: z.string(), name: z.string(), scopes: z.array(z.enum(scopes)) }),
]);

export type Content = z.output<typeof contentSchema>;

export interface Opened {
  content: Content;
  endsAtMs: number;
}

// One cookie is sent only over HTTPS, the other one is for this machine. Because of its prefix, a
// browser accepts the first only from this host. A session in one cookie is not valid in the other.
export interface CookieNames {
  encrypted: string;
  local: string;
}

export class Sessions {
  readonly cookies: CookieNames;
  readonly #service: string;
  readonly #key: Uint8Array;

  // Without a key that replicas share, a session is known to this process only.
  constructor(service: string, key: string | undefined) {
    this.cookies = { encrypted: `__Host-kenri-${service}`, local: `kenri-${service}` };
    this.#service = service;
    const purpose = `kenri console session of ${service}`;
    this.#key = new Uint8Array(hkdfSync("sha256", key ?? randomBytes(32), "", purpose, 32));
  }

  async seal(
    content: Content,
    cookie: string,
    { expiresAtMs = Infinity }: Caller,
  ): Promise<string> {
    const endsAtMs = Math.min(Date.now() + maxHours * 3_600_000, expiresAtMs);
    return await new EncryptJWT(content)
      .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
      .setIssuer(this.#service)
      .setAudience(cookie)
      .setExpirationTime(Math.floor(endsAtMs / 1_000))
      .encrypt(this.#key);
  }

  async open(sealed: string, cookie: string): Promise<Opened> {
    try {
      const { payload } = await jwtDecrypt(sealed, this.#key, {
        keyManagementAlgorithms: ["dir"],
        contentEncryptionAlgorithms: ["A256GCM"],
        issuer: this.#service,
        audience: cookie,
        requiredClaims: ["exp"],
      });
      return { content: contentSchema.parse(payload), endsAtMs: (payload.exp ?? 0) * 1_000 };
    } catch {
      throw sessionOver();
    }
  }
}

export function sessionOver(): ApiError {
  return badCredential("the session is over, sign in again");
}
