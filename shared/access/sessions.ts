import { EncryptJWT, jwtDecrypt } from "jose";
import { hkdfSync, randomBytes } from "node:crypto";
import { z } from "zod";
import type { ApiError } from "../http/errors.ts";
import { scopes } from "@kenri/proto/scopes.ts";
import type { Caller } from "./caller.ts";
import { badCredential } from "./refusals.ts";

// The session of a person who has signed in, which the browser keeps in a cookie. A browser sends
// cookies to every port of a host, so the cookie never contains the credential. A session is
// encrypted, opens only the console of one service, and ends with the credential, at the latest
// after a working day. The services store no sessions.

const maxHours = 8;

// Identifies the caller of a session. A JWT can't be looked up later, so its session contains its
// claims.
const contentSchema = z.union([
  z.object({ digest: z.string() }),
  z.object({ issuer: z.string(), name: z.string(), scopes: z.array(z.enum(scopes)) }),
]);

export type Content = z.output<typeof contentSchema>;

export interface Opened {
  content: Content;
  endsAtMs: number;
}

// The first cookie is sent only over HTTPS, and its prefix makes browsers accept it only from this
// host. The second is for use on this machine. A session from one cookie is not valid in the other.
export interface CookieNames {
  encrypted: string;
  local: string;
}

export class Sessions {
  readonly cookies: CookieNames;
  readonly #service: string;
  readonly #key: Uint8Array;

  // Without a key that the replicas share, a session is valid only in this process.
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
      throw sessionEnded();
    }
  }
}

export function sessionEnded(): ApiError {
  return badCredential("the session has ended, sign in again");
}
