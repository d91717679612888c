// Every error that a caller may see: a code and a sentence. This table is the only place that
// knows which HTTP status a code means.
const statusOfCode = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  IDEMPOTENCY_KEY_CONFLICT: 409,
  ENTITLEMENT_STATE_CONFLICT: 409,
  ENTITLEMENT_LIMIT_REACHED: 409,
  PAYLOAD_TOO_LARGE: 413,
  URI_TOO_LONG: 414,
  UNSUPPORTED_MEDIA_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_ERROR: 500,
  SERVICE_UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export const errorCodes = Object.keys(statusOfCode) as ErrorCode[];

export class ApiError extends Error {
  override readonly name = "ApiError";

  readonly code: ErrorCode;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get status(): (typeof statusOfCode)[ErrorCode] {
    return statusOfCode[this.code];
  }

  get body(): { code: ErrorCode; message: string } {
    return { code: this.code, message: this.message };
  }
}

// The caller may try again, with the same idempotency key, when the seconds are over.
export function unavailable(message: string, retryAfterSeconds = 1): ApiError {
  return new ApiError("SERVICE_UNAVAILABLE", message, { "Retry-After": `${retryAfterSeconds}` });
}

// The service can't run as it is set up, and trying again would not help: it ends with exit code 1.
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

// For these the client libraries have no more than a code. Deno's TLS can't tell the two causes apart.
const sentences: Record<string, string> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate has expired, or was signed by no authority that is trusted",
  SERVER_OPT_NA: "the server offers no TLS",
};

// What went wrong in one line, for a log or a last_error column. PostgreSQL can store neither a NUL
// nor half of a character.
export function reasonOf(error: unknown): string {
  const text = sentences[codeOf(error)] ??
    (error instanceof Error ? error.message || error.name : String(error));
  // deno-lint-ignore no-control-regex
  return text.replaceAll(/[\u0000-\u001f]+/g, " ").slice(0, 1000).toWellFormed();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
