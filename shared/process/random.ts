// Random bytes from the system, as hexadecimal text. They are fetched many at a time, because each
// call takes a microsecond, however few they are.
const reserve = new Uint8Array(4_096);
let text = "";
let used = 0;

export function randomHex(bytes: number): string {
  if (used + 2 * bytes > text.length) {
    text = crypto.getRandomValues(reserve).toHex();
    used = 0;
  }
  used += 2 * bytes;
  return text.slice(used - 2 * bytes, used);
}
