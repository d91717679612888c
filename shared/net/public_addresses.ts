// Which addresses are public: everybody on the internet may reach them. All others lead inward, to
// this machine, its network or the services of its cloud. Permissions are made of this list, so
// nothing here imports a package.

// IANA's registry of special-purpose addresses, multicast, and one address of Azure's hosts.
const nonPublicV4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32"],
  ...["169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"],
  ...["192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"],
].map(known);

// Of IPv6 only one eighth is given out to the internet. These parts of it are not public, or contain
// an IPv4 address (Teredo, 6to4).
const publicV6 = known("2000::/3");
const nonPublicV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(known);

// Deno 2.9.6 can deny single IPv6 addresses, but no ranges: this machine, and the metadata of AWS.
const deniedV6 = ["::/128", "::1/128", "fd00:ec2::254/128"].map(known);

/** All addresses that begin with the same bits. */
export interface Range {
  start: bigint; // without the bits that differ
  prefix: number; // bits that are the same
  bits: 32 | 128; // of an address
}

export function isPublic(address: string): boolean {
  const one = readRange(address);
  if (one === undefined) return false;
  if (one.bits === 32) return !nonPublicV4.some((range) => contains(range, one));
  return contains(publicV6, one) && !nonPublicV6.some((range) => contains(range, one));
}

export function isIn(ranges: readonly Range[], address: string): boolean {
  const one = readRange(address);
  return one !== undefined && ranges.some((range) => contains(range, one));
}

export function isAddress(text: string): boolean {
  return readBits(text) !== undefined;
}

/** An address, or a range such as `10.0.0.0/8`. Bits after the prefix must be zero. */
export function readRange(text: string): Range | undefined {
  const [, address = "", written] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const read = readBits(address);
  if (read === undefined) return undefined;
  const range = { ...read, prefix: written === undefined ? read.bits : Number(written) };
  if (range.prefix > range.bits) return undefined;
  return read.start % size(range) === 0n ? range : undefined;
}

/** What `--deny-net` must contain so that only public addresses and the exceptions can be reached. */
export function deniedHosts(exceptions: readonly Range[]): string[] {
  const denied = [...nonPublicV4, ...deniedV6].flatMap((range) => without(range, exceptions));
  return denied.map(written);
}

/** The first address of a range. */
export function firstAddress(range: string): string {
  const read = readRange(range.replaceAll(/[[\]]/g, ""));
  return read === undefined ? "" : written({ ...read, prefix: read.bits });
}

/** The last one. */
export function lastAddress(range: string): string {
  const read = readRange(range.replaceAll(/[[\]]/g, ""));
  if (read === undefined) return "";
  return written({ ...read, start: read.start + size(read) - 1n, prefix: read.bits });
}

// What one customer of a provider has: an IPv4 address, or all IPv6 addresses with the same first half.
// Text that is no address stays as it is.
export function customerOf(address: string): string {
  const { start, bits } = readBits(address) ?? {};
  if (start === undefined) return address;
  if (bits === 32 || start >> 32n === 0xffffn) {
    return written({ start: start & 0xffff_ffffn, prefix: 32, bits: 32 });
  }
  return written({ start: start >> 64n << 64n, prefix: 128, bits: 128 });
}

// Halves the range until each part is an exception or contains none.
function without(range: Range, exceptions: readonly Range[]): Range[] {
  if (exceptions.some((exception) => contains(exception, range))) return [];
  if (!exceptions.some((exception) => contains(range, exception))) return [range];
  const lower = { ...range, prefix: range.prefix + 1 };
  const upper = { ...lower, start: range.start + size(lower) };
  return [...without(lower, exceptions), ...without(upper, exceptions)];
}

function contains(outer: Range, inner: Range): boolean {
  return outer.bits === inner.bits && outer.prefix <= inner.prefix &&
    inner.start - inner.start % size(outer) === outer.start;
}

function size({ prefix, bits }: Range): bigint {
  return 1n << BigInt(bits - prefix);
}

function known(text: string): Range {
  const range = readRange(text);
  if (range === undefined) throw new Error(`"${text}" is no range of addresses`);
  return range;
}

// In a permission an IPv6 address has brackets. Its shortest form is not needed.
function written({ start, prefix, bits }: Range): string {
  const width = bits === 32 ? 8n : 16n;
  const parts = Array.from(
    { length: bits === 32 ? 4 : 8 },
    (_, at) => (start >> (BigInt(bits) - width * BigInt(at + 1))) & ((1n << width) - 1n),
  );
  if (bits === 128) return `[${parts.map((part) => part.toString(16)).join(":")}]`;
  return `${parts.join(".")}${prefix === 32 ? "" : `/${prefix}`}`;
}

function readBits(address: string): { start: bigint; bits: 32 | 128 } | undefined {
  const v4 = readV4(address);
  if (v4 !== undefined) return { start: v4, bits: 32 };
  const v6 = readV6(address);
  return v6 === undefined ? undefined : { start: v6, bits: 128 };
}

function readV4(address: string): bigint | undefined {
  const parts = address.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) {
    return undefined;
  }
  if (parts.some((part) => Number(part) > 255)) return undefined;
  return parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

// The parser of urls knows all forms of an IPv6 address, and writes it without a dotted part.
function readV6(address: string): bigint | undefined {
  if (!/^[\da-fA-F:.]*:[\da-fA-F:.]*$/.test(address)) return undefined;
  const host = URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1);
  if (host === undefined) return undefined;
  const [before = "", after] = host.split("::");
  const groups = (text: string) => text === "" ? [] : text.split(":");
  const [head, tail] = [groups(before), groups(after ?? "")];
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return [...head, ...zeros, ...tail].reduce(
    (bits, group) => (bits << 16n) | BigInt(`0x${group}`),
    0n,
  );
}
