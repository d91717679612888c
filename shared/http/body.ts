import { Deadlines } from "../process/deadlines.ts";
import { ApiError } from "./errors.ts";
import { refusedBy } from "./limits.ts";

const usualBytes = 16 * 1024;
const maxSeconds = 10;

const tooLarge = (maxBytes: number) => {
  const message = `request body is over ${maxBytes / 1024} KiB`;
  return refusedBy("body_size", new ApiError("PAYLOAD_TOO_LARGE", message));
};
const malformed = () => new ApiError("BAD_REQUEST", "request body is invalid");
const tooSlow = () => {
  const error = new ApiError("REQUEST_TIMEOUT", `request body took over ${maxSeconds} seconds`);
  return refusedBy("body_time", error);
};

// The JSON value in a request's body. Reading stops at the limits of size and time, so neither a
// huge body nor one that never ends can occupy the service.
export async function readJson(request: Request, maxBytes = usualBytes): Promise<unknown> {
  const bytes = await readBody(request, jsonType, "application/json", maxBytes);
  try {
    return JSON.parse(strictUtf8.decode(bytes));
  } catch {
    throw malformed();
  }
}

// The same as text, for another service that reads it.
export async function readJsonText(request: Request): Promise<string> {
  const bytes = await readBody(request, jsonType, "application/json", usualBytes);
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw malformed();
  }
}

// The fields of a form that a browser has sent.
export async function readFields(request: Request): Promise<URLSearchParams> {
  const bytes = await readBody(request, formType, "application/x-www-form-urlencoded", usualBytes);
  return new URLSearchParams(new TextDecoder().decode(bytes));
}

async function readBody(
  request: Request,
  type: RegExp,
  name: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const { headers } = request;
  const length = headers.get("Content-Length");
  // Asking for the body of a request makes it a stream, which takes longer than reading it.
  if (length === null && !request.body) {
    throw new ApiError("BAD_REQUEST", "request body is required");
  }
  if (!type.test(headers.get("Content-Type")?.trim() ?? "")) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", `Content-Type must be ${name}`);
  }
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  let bytes: Uint8Array;
  try {
    bytes = length === null
      ? await readChunks(request.body as ReadableStream<Uint8Array>, maxBytes)
      : await deadlines.within(request.bytes(), tooSlow); // into a buffer of the announced length
  } catch (error) {
    throw error instanceof ApiError ? error : malformed();
  }
  if (bytes.length === 0) throw new ApiError("BAD_REQUEST", "request body is required");
  return bytes;
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const jsonType = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
const formType = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

const deadlines = new Deadlines(maxSeconds * 1_000);

async function readChunks(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array> {
  const reader = chunksOf(body);
  try {
    return await deadlines.within(readAll(reader, maxBytes), tooSlow);
  } catch (error) {
    reader.cancel();
    throw error;
  }
}

async function readAll(reader: Chunks, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await reader.next();
    if (!chunk) return concat(chunks, size);
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
}

interface Chunks {
  next(): Promise<Uint8Array | undefined>;
  cancel(): void;
}

const bufferBytes = 2_048;

// A body of unknown length that has not arrived completely is read into a small buffer of our own.
// Deno would use 64 KiB for it, and 64 KiB more until the connection ends, so thousands of half-sent
// requests would use up the memory. A body that arrived together with the head is not a byte stream,
// and is read as a whole.
function chunksOf(body: ReadableStream<Uint8Array>): Chunks {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch {
    const whole = body.getReader();
    return { next: async () => (await whole.read()).value, cancel: () => cancel(whole) };
  }
  let buffer = new Uint8Array(bufferBytes);
  const next = async () => {
    const { done, value } = await reader.read(buffer);
    if (done) return undefined;
    buffer = new Uint8Array(value.buffer);
    return value.slice();
  };
  return { next, cancel: () => cancel(reader) };
}

function cancel(reader: ReadableStreamBYOBReader | ReadableStreamDefaultReader): void {
  void reader.cancel().catch(() => {});
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
