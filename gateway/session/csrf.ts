import { Buffer } from "node:buffer";
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { apiError } from "../errors.ts";

// Whether an unsafe request comes from our own page. Another site can make a browser send the cookie,
// but it can't read the token, which only the session's owner gets from /v1/me.

export class CsrfTokens {
  readonly #keys: Uint8Array[];

  constructor(keys: Uint8Array[]) {
    this.#keys = keys.map((key) =>
      new Uint8Array(hkdfSync("sha256", key, "", "kenri gateway csrf", 32))
    );
  }

  of(sessionId: string): string {
    return this.#tokensOf(sessionId)[0] ?? "";
  }

  // Throws CSRF_REJECTED. A browser says where a request comes from; a client that is no browser sends
  // only the token.
  verify({ headers }: Request, sessionId: string, publicUrl: string): void {
    const site = headers.get("Sec-Fetch-Site");
    const origin = headers.get("Origin");
    const isOurs = site !== null ? site === "same-origin" : origin === null || origin === publicUrl;
    if (!isOurs) throw rejected("the request comes from another site");
    const given = Buffer.from(headers.get("X-CSRF-Token") ?? "");
    const isValid = this.#tokensOf(sessionId).some((token) =>
      token.length === given.length && timingSafeEqual(Buffer.from(token), given)
    );
    if (!isValid) throw rejected("X-CSRF-Token must be the csrf_token of /v1/me");
  }

  #tokensOf(sessionId: string): string[] {
    return this.#keys.map((key) => createHmac("sha256", key).update(sessionId).digest("base64url"));
  }
}

const rejected = (message: string) => apiError("CSRF_REJECTED", message);

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

export const isUnsafe = (method: string): boolean => !safeMethods.has(method);
