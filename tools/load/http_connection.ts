import { type Connection, openConnection } from "./closed_loop.ts";

export function connectToHttp(url: URL): Promise<Connection> {
  return openConnection(url, isWhole);
}

export function statusOf(answer: Uint8Array): number {
  const digit = (at: number) => (answer[at] ?? 0) - 48;
  return digit(9) * 100 + digit(10) * 10 + digit(11);
}

const lineEnd = 13; // "\r"; "\n" follows
const contentLength = new TextEncoder().encode("content-length:");

// Reads the bytes itself: decoding each head to text would cost half as much as all the rest.
function isWhole(answer: Uint8Array): boolean {
  let body = NaN;
  for (let at = 0; at + 3 < answer.length; at++) {
    if (answer[at] !== lineEnd) continue;
    const line = at + 2;
    if (answer[line] === lineEnd) return answer.length >= line + 2 + body;
    if (isContentLength(answer, line)) body = numberAt(answer, line + contentLength.length);
  }
  return false;
}

function isContentLength(answer: Uint8Array, at: number): boolean {
  const lowerCase = 32; // the bit
  return contentLength.every((byte, i) => ((answer[at + i] ?? 0) | lowerCase) === byte);
}

function numberAt(answer: Uint8Array, start: number): number {
  let number = 0;
  for (let at = start; answer[at] !== lineEnd; at++) {
    const byte = answer[at];
    if (byte === undefined) return NaN;
    if (byte !== 32) number = number * 10 + byte - 48;
  }
  return number;
}
