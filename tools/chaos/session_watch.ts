// Sessions of users as the gateways seal them, and clients that look whether they are let in.
import { setTimeout as pause } from "node:timers/promises";
import { cookiesOf } from "../../gateway/session/cookies.ts";
import { CsrfTokens } from "../../gateway/session/csrf.ts";
import { Seals } from "../../gateway/session/seal.ts";
import { SessionCookies } from "../../gateway/session/session.ts";
import type { HttpRequest } from "../load/http_request.ts";
import { attempt } from "../load/repeating_client.ts";
import { plantedSecretKey } from "../planted.ts";
import { gatewayUrl } from "./replica_settings.ts";

export interface UserSession {
  sessionId: string;
  userId: string;
  beganAt: number;
}

/** One request with a session to a gateway. */
export interface SessionLook {
  gateway: string;
  sessionId: string;
  sentAt: number;
  answeredAt: number;
  status: number | undefined; // undefined without an answer
}

/** How long a gateway may let in a session that has ended: the staleness, and a watermark's delay. */
export const boundMs = 6_000;

const lookMs = 500;
const lookTimeoutMs = 3_000;

/** Longer than the clock of a gateway jumps. */
export const sessionMs = 6 * 86_400_000;

const cookies = cookiesOf(gatewayUrl);
const keys = [Uint8Array.fromBase64(plantedSecretKey, { alphabet: "base64url" })];
const sealed = new SessionCookies(new Seals(keys), { idleMs: sessionMs });
const csrf = new CsrfTokens(keys);

export async function beginSession(
  userId: string,
  epoch: number,
): Promise<{ session: UserSession; cookie: string }> {
  const session = { sessionId: crypto.randomUUID(), userId, beganAt: Date.now() };
  const cookie = await sealed.seal({
    ...{ ...session, provider: "https://issuer.example", epoch },
    ...{ issuedAtMs: session.beganAt, expiresAtMs: session.beganAt + sessionMs },
  });
  return { session, cookie: `${cookies.session}=${cookie}` };
}

/** Looks again and again whether a session is let in. */
export class Watch {
  readonly session: UserSession;
  readonly #cookie: string;
  #untilMs = Infinity;

  constructor(session: UserSession, cookie: string) {
    this.session = session;
    this.#cookie = cookie;
  }

  endsIn(ms: number): void {
    this.#untilMs = Math.min(this.#untilMs, performance.now() + ms);
  }

  logout(): HttpRequest {
    const token = csrf.of(this.session);
    const headers = { Cookie: this.#cookie, "X-CSRF-Token": token, Origin: gatewayUrl };
    return { path: "/logout", init: { method: "POST", headers } };
  }

  async look(
    gateway: string,
    url: string,
    looks: SessionLook[],
    stop: AbortSignal,
  ): Promise<void> {
    const init = { method: "GET", headers: { Cookie: this.#cookie } };
    const { sessionId } = this.session;
    while (!stop.aborted && performance.now() < this.#untilMs) {
      const one = await attempt(url, { path: "/v1/me", init }, lookTimeoutMs);
      const { sentAt, answeredAt, answer } = one;
      looks.push({ gateway, sessionId, sentAt, answeredAt, status: answer?.status });
      await pause(lookMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}
