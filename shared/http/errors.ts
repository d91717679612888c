import type { ContentfulStatusCode } from "hono/utils/http-status";

// The errors that every service may answer with, and the HTTP status of each code. A service with
// codes of its own extends this table.
export const statusOfCode = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  IDEMPOTENCY_KEY_CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  URI_TOO_LONG: 414,
  UNSUPPORTED_MEDIA_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_ERROR: 500,
  SERVICE_UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

// A code that only one service has.
export interface OwnCode {
  code: string;
  status: ContentfulStatusCode;
}

// An error that a caller may see: a code and a sentence.
export class ApiError extends Error {
  override readonly name = "ApiError";

  readonly code: string;
  readonly status: ContentfulStatusCode;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode | OwnCode, message: string, headers: Record<string, string> = {}) {
    super(message);
    const known = typeof code === "string" ? { code, status: statusOfCode[code] } : code;
    this.code = known.code;
    this.status = known.status;
    this.headers = headers;
  }

  get body(): { code: string; message: string } {
    return { code: this.code, message: this.message };
  }
}

/** Makes the errors of a service with codes of its own. */
export function apiErrors<Codes extends Record<string, ContentfulStatusCode>>(
  statusOfCode: Codes,
): (code: keyof Codes & string, message: string, headers?: Record<string, string>) => ApiError {
  return (code, message, headers) =>
    new ApiError({ code, status: statusOfCode[code] as ContentfulStatusCode }, message, headers);
}

// The caller may repeat the request with the same idempotency key after these seconds.
export function unavailable(message: string, retryAfterSeconds = 1): ApiError {
  return new ApiError("SERVICE_UNAVAILABLE", message, { "Retry-After": `${retryAfterSeconds}` });
}
