import { Buffer } from "node:buffer";
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { apiError } from "../errors.ts";
import type { Session } from "./session.ts";

// Whether an unsafe request comes from our own page. Another site can make a browser send the cookie,
// but it can't read the token, which only the session's owner gets from /v1/me.

type SessionId = Pick<Session, "sessionId">;

export class CsrfTokens {
  readonly #keys: Uint8Array[];
  // Those of sessions in use: making one takes as long as a quarter of a small request.
  readonly #made = new WeakMap<SessionId, string[]>();

  constructor(keys: Uint8Array[]) {
    this.#keys = keys.map((key) =>
      new Uint8Array(hkdfSync("sha256", key, "", "kenri gateway csrf", 32))
    );
  }

  of(session: SessionId): string {
    return this.#tokensOf(session)[0] ?? "";
  }

  // Throws CSRF_REJECTED. Every browser says in one of these headers where an unsafe request comes from.
  verify({ headers }: Request, session: SessionId, publicUrl: string): void {
    const site = headers.get("Sec-Fetch-Site");
    const origin = headers.get("Origin");
    const isOurs = site !== null ? site === "same-origin" : origin === publicUrl;
    if (!isOurs) throw rejected("the request comes from another site");
    const given = Buffer.from(headers.get("X-CSRF-Token") ?? "");
    const isValid = this.#tokensOf(session).some((token) =>
      token.length === given.length && timingSafeEqual(Buffer.from(token), given)
    );
    if (!isValid) throw rejected("X-CSRF-Token must be the csrf_token of /v1/me");
  }

  #tokensOf(session: SessionId): string[] {
    const known = this.#made.get(session);
    if (known) return known;
    const made = this.#keys.map((key) =>
      createHmac("sha256", key).update(session.sessionId).digest("base64url")
    );
    this.#made.set(session, made);
    return made;
  }
}

const rejected = (message: string) => apiError("CSRF_REJECTED", message);

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

export const isUnsafe = (method: string): boolean => !safeMethods.has(method);
