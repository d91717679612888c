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
