import { ApiError } from "./errors.ts";

const maxBytes = 16 * 1024;
const maxSeconds = 10;

const tooLarge = () => new ApiError("PAYLOAD_TOO_LARGE", "request body is over 16 KiB");
const invalid = () => new ApiError("BAD_REQUEST", "request body is invalid");
const late = () => new ApiError("REQUEST_TIMEOUT", `request body took over ${maxSeconds} seconds`);

// The JSON value in a request's body. Reading stops at the limits of size and time, so that neither
// a huge nor a half-sent body holds the service up.
export async function readJson(request: Request): Promise<unknown> {
  if (!request.body) throw new ApiError("BAD_REQUEST", "request body is required");
  if (!isJson(request.headers.get("Content-Type"))) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "Content-Type must be application/json");
  }
  if (Number(request.headers.get("Content-Length")) > maxBytes) throw tooLarge();
  const bytes = await readBytes(request.body);
  if (bytes.length === 0) throw new ApiError("BAD_REQUEST", "request body is required");
  try {
    return JSON.parse(strictUtf8.decode(bytes));
  } catch {
    throw invalid();
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const jsonType = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

function isJson(contentType: string | null): boolean {
  return contentType !== null && jsonType.test(contentType.trim());
}

async function readBytes(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const reader = body.getReader();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    void reader.cancel();
  }, maxSeconds * 1_000);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (timedOut) throw late();
      if (done) return chunks.length === 1 && chunks[0] ? chunks[0] : concat(chunks, size);
      size += value.length;
      if (size > maxBytes) throw tooLarge();
      chunks.push(value);
    }
  } catch (error) {
    void reader.cancel().catch(() => {});
    throw error instanceof ApiError ? error : timedOut ? late() : invalid();
  } finally {
    clearTimeout(timer);
  }
}

function concat(chunks: Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
