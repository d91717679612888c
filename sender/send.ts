import type { SendAnswer, SendFailure, SendRequest } from "@kenri/proto/send.ts";
import {
  type OutsideRules,
  type OutsideUrl,
  problemOfAddress,
  readOutsideUrl,
} from "@kenri/shared/net/outside_url.ts";
import { isAddress } from "@kenri/shared/net/public_addresses.ts";
import { aborted } from "@kenri/shared/process/signals.ts";
import { exchange, type NotConnected } from "./exchange.ts";
import type { Resolve } from "./resolve.ts";

// One request to the outside. It goes only to an address that the rules allow: the address is
// decided once, and the connection is made to this address, so a name that changes its address in
// between has no effect.

export interface SendOptions {
  rules: OutsideRules;
  own: { hostname: string; port: number }; // where this process listens
  resolve: Resolve;
}

/** The time limit is for everything: the name, the connection, TLS, and the answer to its end. */
export async function send(
  request: SendRequest,
  options: SendOptions,
): Promise<SendAnswer | SendFailure> {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), request.timeout_ms);
  try {
    return await sendWithin(end.signal, request, options);
  } finally {
    clearTimeout(timer);
  }
}

/** What is known of a url before its name is resolved. */
export function check(url: string, rules: OutsideRules): SendFailure | undefined {
  const outside = readOutsideUrl(url, rules);
  return typeof outside === "string" ? blocked(outside) : undefined;
}

async function sendWithin(
  limit: AbortSignal,
  request: SendRequest,
  { rules, own, resolve }: SendOptions,
): Promise<SendAnswer | SendFailure> {
  const outside = readOutsideUrl(request.url, rules);
  if (typeof outside === "string") return blocked(outside);
  const addresses = await addressesOf(outside, resolve, limit);
  if ("reason_code" in addresses) return addresses;
  for (const address of addresses) {
    const problem = isOwn(own, address, outside.port)
      ? "must not lead to the sender itself"
      : problemOfAddress(address, outside.port, rules);
    if (problem) return blocked(problem);
  }
  return await toFirst(addresses, limit, request, outside);
}

// Of several addresses the next one is tried only if there was no connection to the one before, so
// the request is never sent twice.
async function toFirst(
  addresses: string[],
  limit: AbortSignal,
  request: SendRequest,
  { url, host, port }: OutsideUrl,
): Promise<SendAnswer | SendFailure> {
  let outcome: SendAnswer | SendFailure | NotConnected = noAddress;
  for (const address of addresses) {
    outcome = await exchange({ address, port, host, url }, request, limit);
    if (!("isConnected" in outcome)) return outcome;
  }
  const { reason_code, message } = outcome as SendFailure;
  return { reason_code, message };
}

async function addressesOf(
  { host }: OutsideUrl,
  resolve: Resolve,
  limit: AbortSignal,
): Promise<string[] | SendFailure> {
  if (isAddress(host)) return [host];
  try {
    const found = await Promise.race([resolve(host), aborted(limit)]);
    if (found === undefined) {
      return { reason_code: "TIMEOUT", message: "The name was not resolved in time" };
    }
    return found.length === 0 ? noAddress : found;
  } catch {
    return noAddress;
  }
}

const noAddress: SendFailure = {
  reason_code: "DNS_FAILED",
  message: "The name of the host has no address",
};

// A caller must not learn from the message which address an internal name has.
function blocked(problem: string): SendFailure {
  return { reason_code: "ADDRESS_BLOCKED", message: `The url ${problem}` };
}

// Its own address may be reached as far as permissions go, because it listens there.
function isOwn(own: SendOptions["own"], address: string, port: number): boolean {
  const isEverywhere = /^[0:.]+$/.test(own.hostname); // 0.0.0.0 or ::
  return port === own.port && (isEverywhere || address === own.hostname);
}
