import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

// A sum over the last hashes of all chains. It does not depend on their order, because erasing a
// user changes the order of the chains but not their hashes. Each hash is stretched to 2,048 bits
// first, because somebody could find other hashes with the same sum if they were shorter.

export interface Heads {
  count: number;
  sum: string; // hexadecimal
}

const parts = 8;
const modulus = 1n << BigInt(parts * 256);

export function headsOf(hashes: (string | undefined)[]): Heads {
  const found = hashes.filter((hash) => hash !== undefined);
  return { count: found.length, sum: addSums(...found.map(stretched)) };
}

function stretched(hash: string): string {
  const of = (part: number) => createHash("sha256").update(`${part} ${hash}`).digest();
  return Buffer.concat(Array.from({ length: parts }, (_, part) => of(part))).toString("hex");
}

export function addSums(...numbers: string[]): string {
  const sum = numbers.reduce((total, number) => (total + BigInt(`0x${number}`)) % modulus, 0n);
  return sum.toString(16);
}
