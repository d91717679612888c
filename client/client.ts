/**
 * The Kenri client for TypeScript: grant, revoke and list entitlements from Deno, Node 20 and
 * newer, and browsers. It needs only the `fetch` of the platform.
 *
 * ```ts
 * import { kenriClient } from "@kenri/client";
 *
 * const kenri = kenriClient("http://127.0.0.1:8080");
 * const { entitlement, replayed } = await kenri.grant("purchase-1", {
 *   user_id: "ann",
 *   stock_keeping_unit: "book",
 *   reason: "purchase",
 *   purchase_id: "purchase-1",
 * });
 * ```
 *
 * @module
 */
import {
  type Change,
  type ChangedEntitlement,
  Conflict,
  type Entitlement,
  type EntitlementChange,
  type Entitlements,
  type ErrorCode,
  KenriError,
  Refused,
  Unavailable,
} from "./answers.ts";
import { type Answer, askUntilAnswered, type Fetch, type Patience } from "./attempts.ts";

export { Conflict, KenriError, Refused, Unavailable };
export type {
  Change,
  ChangedEntitlement,
  Entitlement,
  EntitlementChange,
  Entitlements,
  ErrorCode,
  Fetch,
  Patience,
};

/** The credential of the caller. A function is called again before each attempt. */
export type Token = string | ((signal: AbortSignal) => string | Promise<string>);

export interface ClientOptions extends Partial<Patience> {
  /** Sent with every request. If a function throws, the attempt fails and is repeated. */
  token?: Token;
  /** Sent with every request, for example for a proxy in front of the service. */
  headers?: Record<string, string>;
  /** Replaces the `fetch` of the platform, to observe or route the requests. */
  fetch?: Fetch;
}

export interface CallOptions extends Partial<Patience> {
  /** Ends the call at once with the signal's reason. A request that was sent may still succeed. */
  signal?: AbortSignal;
  /** 1 to 255 visible ASCII characters; by default the service creates one. */
  traceId?: string;
}

export interface KenriClient {
  /**
   * Grants the entitlement. The idempotency key identifies the intent, for example one purchase.
   * Keep it: with the same key the call may be repeated after any failure, also by another process,
   * and the change is made only once.
   */
  grant(key: string, change: EntitlementChange, options?: CallOptions): Promise<Change>;
  /** Revokes the entitlement, also before it was granted: a refund may overtake its purchase. */
  revoke(key: string, change: EntitlementChange, options?: CallOptions): Promise<Change>;
  /** All entitlements of the user, active and revoked, the latest change first. */
  list(userId: string, options?: CallOptions): Promise<Entitlements>;
}

export function kenriClient(url: string | URL, options: ClientOptions = {}): KenriClient {
  const root = String(url).replace(/\/+$/, "");
  const { token } = options;
  const bare = options.fetch ?? globalThis.fetch;
  const fetch = token === undefined ? bare : withToken(token, bare);

  function ask(path: string, request: RequestInit, call: CallOptions): Promise<Answer> {
    const headers = new Headers(options.headers);
    for (const [name, value] of new Headers(request.headers)) headers.set(name, value);
    if (call.traceId !== undefined) headers.set("X-Trace-Id", call.traceId);
    // A redirected POST would become a GET.
    const init: RequestInit = { ...request, headers, redirect: "manual" };
    const patience = {
      attemptTimeoutMs: call.attemptTimeoutMs ?? options.attemptTimeoutMs ?? 5_000,
      deadlineMs: call.deadlineMs ?? options.deadlineMs ?? 30_000,
    };
    return askUntilAnswered(fetch, root + path, init, patience, call.signal);
  }

  async function change(
    path: string,
    key: string,
    fields: EntitlementChange,
    call: CallOptions = {},
  ): Promise<Change> {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": checked(key) };
    const request = { method: "POST", headers, body: JSON.stringify(fields) };
    const answer = await ask(path, request, call);
    return {
      entitlement: read<ChangedEntitlement>(answer),
      replayed: isReplayed(answer),
      traceId: answer.headers.get("X-Trace-Id") ?? "",
    };
  }

  return {
    grant: (key, fields, call) => change("/v1/entitlements/grants", key, fields, call),
    revoke: (key, fields, call) => change("/v1/entitlements/revokes", key, fields, call),
    list: async (userId, call = {}) => {
      const path = `/v1/users/${encodeURIComponent(userId)}/entitlements`;
      return read<Entitlements>(await ask(path, { method: "GET" }, call));
    },
  };
}

function withToken(token: Token, fetch: Fetch): Fetch {
  return async (url, init) => {
    const { signal } = init as { signal: AbortSignal }; // each attempt has one
    const headers = new Headers(init.headers);
    const shown = typeof token === "string" ? token : await token(signal);
    headers.set("Authorization", `Bearer ${shown}`);
    return await fetch(url, { ...init, headers });
  };
}

// Checked here as well, because fetch trims header values, and a trimmed key is another key.
function checked(key: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new Refused(
    "BAD_REQUEST",
    "Idempotency-Key must be 1 to 255 visible ASCII characters",
    400,
  );
}

function read<Body>(answer: Answer): Body {
  const body = parsed(answer.text);
  if (answer.status === 200 && body) return body as Body;
  const { code, message } = (body ?? {}) as { code?: ErrorCode; message?: string };
  if (code === undefined || message === undefined) {
    throw new Refused(
      undefined,
      `status ${answer.status} is not an answer of Kenri`,
      answer.status,
    );
  }
  if (answer.status === 409) throw new Conflict(code, message, isReplayed(answer));
  throw new Refused(code, message, answer.status);
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function isReplayed({ headers }: Answer): boolean {
  return headers.get("Idempotency-Replayed") === "true";
}
