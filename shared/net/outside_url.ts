import { isAddress, isIn, isPublic, type Range } from "./public_addresses.ts";

// Where a request to the outside may go, as far as its url says. A name is judged again by the
// addresses that it has when the request is made.

export interface OutsideRules {
  plainHttp: boolean; // also http
  ports: readonly number[];
  allowed: readonly Range[]; // addresses that are not public, or that may use any port
}

export interface OutsideUrl {
  url: URL;
  host: string; // without brackets
  port: number;
}

const maxUrl = 2_048;

/** The url, or what is wrong with it in words that repeat nothing of it. */
export function readOutsideUrl(written: string, rules: OutsideRules): OutsideUrl | string {
  if (written.length > maxUrl) return `must have at most ${maxUrl} characters`;
  const url = URL.parse(written);
  if (url === null || !/^https?:$/.test(url.protocol)) return "must begin with https://";
  if (url.protocol === "http:" && !rules.plainHttp) return "must begin with https://";
  if (`${url.username}${url.password}` !== "") return "must not contain a user or a password";
  if (!isPlainlyWritten(written, url)) return "must name its host in the usual form";
  const host = url.hostname.replaceAll(/^\[|\]$/g, "");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const problem = isAddress(host)
    ? problemOfAddress(host, port, rules)
    : problemOfName(port, rules);
  return problem ?? { url, host, port };
}

// Only an allowed address may use any port, and a name may turn out to have one.
function problemOfName(port: number, rules: OutsideRules): string | undefined {
  return rules.allowed.length > 0 ? undefined : problemOfPort(port, rules);
}

/** Also for the addresses of a name. */
export function problemOfAddress(
  address: string,
  port: number,
  rules: OutsideRules,
): string | undefined {
  if (isIn(rules.allowed, address)) return undefined;
  if (!isPublic(address)) return "must not lead to an address that is not public";
  return problemOfPort(port, rules);
}

function problemOfPort(port: number, { ports, plainHttp }: OutsideRules): string | undefined {
  if (ports.includes(port) || plainHttp && port === 80) return undefined;
  return `must use one of the ports ${ports.join(", ")}`;
}

// Parsers read an address in many forms (2130706433, 0x7f.1, 127.1, full-width digits), and some
// read other hosts than this one. So the host must be written as this parser would write it.
function isPlainlyWritten(written: string, { protocol, hostname }: URL): boolean {
  const start = `${protocol}//${hostname}`;
  return written.slice(0, start.length).toLowerCase() === start && /^[\x21-\x7e]+$/.test(written) &&
    !written.includes("\\") && /^(:\d{1,5})?([/?#]|$)/.test(written.slice(start.length));
}
