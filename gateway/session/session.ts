import { z } from "zod";
import type { SessionOptions } from "../config.ts";
import type { Seals } from "./seal.ts";

// A session, as its cookie contains it. No server stores sessions.

export interface Session {
  sessionId: string;
  userId: string;
  provider: string;
  epoch: number; // of the user's sessions when it began
  issuedAtMs: number; // of this cookie; a session in use gets a new one now and then
  expiresAtMs: number;
  issuerSession?: string | undefined; // the id under which the issuer may end it
}

const contentSchema = z.object({
  session_id: z.uuid(),
  user_id: z.uuid(),
  provider: z.string(),
  session_epoch: z.int(),
  issued_at: z.int(),
  expires_at: z.int(),
  issuer_session: z.uuid().optional(),
});

// A cookie is opened once and then remembered, because opening takes longer than all else that a small
// request needs.
const maxRemembered = 20_000;

export class SessionCookies {
  readonly #seals: Seals;
  readonly #options: Pick<SessionOptions, "idleMs">;
  #recent = new Map<string, Session>();
  #before = new Map<string, Session>();

  constructor(seals: Seals, options: Pick<SessionOptions, "idleMs">) {
    this.#seals = seals;
    this.#options = options;
  }

  async seal(session: Session): Promise<string> {
    return await this.#seals.seal("session", {
      session_id: session.sessionId,
      user_id: session.userId,
      provider: session.provider,
      session_epoch: session.epoch,
      issued_at: session.issuedAtMs,
      expires_at: session.expiresAtMs,
      ...(session.issuerSession ? { issuer_session: session.issuerSession } : {}),
    }, this.endOf(session));
  }

  // Undefined if it was not sealed by us, or has ended by time.
  async open(cookie: string): Promise<Session | undefined> {
    const session = this.#recent.get(cookie) ?? this.#before.get(cookie) ??
      await this.#openSealed(cookie);
    if (!session || Date.now() >= this.endOf(session)) return undefined;
    this.#recent.set(cookie, session);
    if (this.#recent.size > maxRemembered / 2) {
      this.#before = this.#recent;
      this.#recent = new Map();
    }
    return session;
  }

  endOf({ issuedAtMs, expiresAtMs }: Session): number {
    return Math.min(issuedAtMs + this.#options.idleMs, expiresAtMs);
  }

  // Whether a request should get a new cookie, so that the session does not end while it is used.
  isToRenew({ issuedAtMs }: Session): boolean {
    return Date.now() - issuedAtMs > this.#options.idleMs / 12;
  }

  async #openSealed(cookie: string): Promise<Session | undefined> {
    const { success, data } = contentSchema.safeParse(await this.#seals.open("session", cookie));
    if (!success) return undefined;
    return {
      sessionId: data.session_id,
      userId: data.user_id,
      provider: data.provider,
      epoch: data.session_epoch,
      issuedAtMs: data.issued_at,
      expiresAtMs: data.expires_at,
      issuerSession: data.issuer_session,
    };
  }
}
