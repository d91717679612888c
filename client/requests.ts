import { type Answered, Conflict, type ErrorCode, Refused } from "./answers.ts";
import { type Answer, askUntilAnswered, type Fetch, type Patience } from "./attempts.ts";

// One call of the API: its headers, its token, and what its answer becomes.

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

export interface PageOptions extends CallOptions {
  /** Rows on the page, 1 to 200; 50 by default. */
  limit?: number | undefined;
  /** `next_cursor` of the page before. */
  cursor?: string | undefined;
}

/** The body of an answer to a request with a key. */
export interface Posted<Body> extends Answered {
  body: Body;
}

export interface Requests {
  get<Body>(path: string, call?: CallOptions): Promise<Body>;
  delete<Body>(path: string, call?: CallOptions): Promise<Body>;
  /** A request that may be repeated without a key. */
  send<Body>(
    method: "POST" | "PATCH" | "PUT",
    path: string,
    fields: object | undefined,
    call?: CallOptions,
    headers?: Record<string, string>,
  ): Promise<Body>;
  post<Body>(
    path: string,
    key: string,
    fields: object | undefined,
    call?: CallOptions,
  ): Promise<Posted<Body>>;
}

export function requestsTo(url: string | URL, options: ClientOptions): Requests {
  const root = String(url).replace(/\/+$/, "");
  const { token } = options;
  const bare = options.fetch ?? globalThis.fetch;
  const fetch = token === undefined ? bare : withToken(token, bare);

  function ask(path: string, request: RequestInit, call: CallOptions = {}): Promise<Answer> {
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

  return {
    get: async (path, call) => read(await ask(path, { method: "GET" }, call)),
    delete: async (path, call) => read(await ask(path, { method: "DELETE" }, call)),
    send: async (method, path, fields, call, more) => {
      const { headers, ...body } = withBody(fields);
      return read(await ask(path, { method, headers: { ...headers, ...more }, ...body }, call));
    },
    post: async (path, key, fields, call) => {
      const { headers, ...body } = withBody(fields);
      const withKey = { ...headers, "Idempotency-Key": checked(key) };
      const answer = await ask(path, { method: "POST", headers: withKey, ...body }, call);
      return {
        body: read(answer),
        replayed: isReplayed(answer),
        traceId: answer.headers.get("X-Trace-Id") ?? "",
      };
    },
  };
}

/** Writes the query string of a url. Parameters that are undefined are left out. */
export function query(parameters: Record<string, string | number | undefined>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]
  );
  return given.length === 0 ? "" : `?${given.join("&")}`;
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

function withBody(fields: object | undefined): { headers: Record<string, string>; body?: string } {
  if (fields === undefined) return { headers: {} };
  return { headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) };
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
  if (answer.status === 204) return undefined as Body;
  const body = parsed(answer.text);
  if ([200, 201, 202].includes(answer.status) && body) return body as Body;
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
