// A connection that speaks PostgreSQL's protocol itself. A driver would spend more on each call than
// PostgreSQL's own pgbench does on all of it.
import { Buffer } from "node:buffer";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { type Connection, openConnection, textOf } from "./closed_loop.ts";

const encoder = new TextEncoder();
const protocolVersion = 196_608; // 3.0

/** Logs in, and prepares the statement that all calls are about. */
export async function connectToPostgres(text: string, statement: string): Promise<Connection> {
  const url = new URL(text);
  const connection = await openConnection(url, isWhole);
  const [user, password] = [url.username, url.password].map(decodeURIComponent) as [string, string];
  const database = decodeURIComponent(url.pathname.slice(1));
  const names = `user\0${user}\0database\0${database}\0\0`;
  await expect(connection, concat(int32(names.length + 8), int32(protocolVersion), names), "R");
  await logIn(connection, password);
  await expect(connection, concat(message("P", `\0${statement}\0`, int16(0)), message("S")), "1");
  return connection;
}

/** The bytes of a call: bind the values, execute, and wait for the commit. */
export function callOf(values: string[]): Uint8Array {
  const parameters = values.flatMap((value) => {
    const bytes = encoder.encode(value);
    return [int32(bytes.length), bytes];
  });
  const all = [int16(0), int16(values.length), ...parameters, int16(0)];
  return concat(message("B", "\0\0", ...all), message("E", "\0", int32(0)), message("S"));
}

/** Bound, and then a row: an error would come instead of either. */
export function isRow(answer: Uint8Array): boolean {
  return answer[0] === code("2") && answer[5] === code("D");
}

// All answers end by saying that the server is ready for the next request, except for those of the
// login, which are one message each.
function isWhole(answer: Uint8Array): boolean {
  if (answer[0] === code("R")) {
    const { byteLength, buffer } = answer;
    const [length, kind] = [new DataView(buffer).getInt32(1), new DataView(buffer).getInt32(5)];
    if (kind === saslBegins || kind === saslContinues) return byteLength > length;
  }
  const at = answer.length - 6;
  return at >= 0 && answer[at] === code("Z") && answer[at + 4] === 5;
}

const saslBegins = 10;
const saslContinues = 11;

async function expect(connection: Connection, request: Uint8Array, type: string): Promise<string> {
  const answer = textOf(await connection.ask(request));
  if (answer[0] !== type) throw new Error(`PostgreSQL answered ${JSON.stringify(answer)}`);
  return answer;
}

// SCRAM-SHA-256 of RFC 5802, without the check of the server's own signature.
async function logIn(connection: Connection, password: string): Promise<void> {
  const begin = `n=,r=${randomBytes(18).toString("base64")}`;
  const first = `n,,${begin}`;
  const hello = message("p", "SCRAM-SHA-256\0", int32(first.length), first);
  const challenge = (await expect(connection, hello, "R")).slice(9);
  const [, nonce, salt = "", rounds] = /^r=([^,]+),s=([^,]+),i=(\d+)/.exec(challenge) ?? [];
  const final = `c=biws,r=${nonce}`;
  const salted = pbkdf2Sync(password, Buffer.from(salt, "base64"), Number(rounds), 32, "sha256");
  const hmac = (key: Uint8Array, text: string) => createHmac("sha256", key).update(text).digest();
  const key = hmac(salted, "Client Key");
  const signature = hmac(
    createHash("sha256").update(key).digest(),
    `${begin},${challenge},${final}`,
  );
  const proof = Buffer.from(key.map((byte, i) => byte ^ (signature[i] ?? 0))).toString("base64");
  await expect(connection, message("p", `${final},p=${proof}`), "R");
}

type Part = string | Uint8Array;

function message(type: string, ...parts: Part[]): Uint8Array {
  const body = concat(...parts);
  return concat(type, int32(body.length + 4), body);
}

function concat(...parts: Part[]): Uint8Array {
  return Buffer.concat(parts.map((part) => typeof part === "string" ? encoder.encode(part) : part));
}

function int32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Uint8Array {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function code(letter: string): number {
  return letter.charCodeAt(0);
}
