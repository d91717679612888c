import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { unavailable } from "../http/errors.ts";
import type { Log } from "../process/log.ts";
import { linked } from "../telemetry/tracing.ts";

// The public keys of the issuer. They are fetched when a token needs them, stay in use while the
// issuer is down, and are fetched again when a token names a key that is not among them.

const freshMs = 600_000;
// How long keys are used without an answer of the issuer. Without this limit, an attacker who can
// block the issuer could keep using a withdrawn key.
const usableMs = 86_400_000;
// Pause between look-ups of unknown keys, because anybody can invent the name of a key.
const lookAgainMs = 10_000;
const retryMs = 2_000;
const timeoutMs = 3_000;

interface Keys {
  find: JWTVerifyGetKey;
  fetchedAt: number;
}

export class IssuerKeys {
  readonly #url: string;
  readonly #log: Log;
  #keys: Keys | undefined;
  #fetching: Promise<void> | undefined;
  #failing = false;
  #notBefore = -Infinity; // no fetch before this time, after one has failed
  #lookAgainAt = -Infinity;

  constructor(url: string, log: Log) {
    this.#url = url;
    this.#log = log;
  }

  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#age > freshMs) await this.#fetch();
    const keys = this.#keys;
    if (keys === undefined || this.#age > usableMs) throw keysUnavailable();
    try {
      return await keys.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (this.#keys === keys) await this.#lookAgain();
      if (this.#keys !== keys && this.#keys !== undefined) {
        return await this.#keys.find(header, token);
      }
      throw this.#failing ? keysUnavailable() : error;
    }
  };

  get #age(): number {
    return performance.now() - (this.#keys?.fetchedAt ?? -Infinity);
  }

  async #lookAgain(): Promise<void> {
    if (this.#fetching) return await this.#fetching;
    if (performance.now() < this.#lookAgainAt) return;
    this.#lookAgainAt = performance.now() + lookAgainMs;
    await this.#fetch();
  }

  // One fetch serves all tokens that wait for it.
  #fetch(): Promise<void> {
    if (performance.now() < this.#notBefore) return Promise.resolve();
    return this.#fetching ??= this.#fetchNow().finally(() => this.#fetching = undefined);
  }

  async #fetchNow(): Promise<void> {
    const url = this.#url;
    try {
      const set = await linked("fetch keys", () => [], () => fetchSet(url));
      this.#keys = { find: createLocalJWKSet(set), fetchedAt: performance.now() };
      if (this.#failing) {
        this.#log.info("The issuer's keys can be fetched again from {url}", { url });
      }
      this.#failing = false;
    } catch (error) {
      this.#notBefore = performance.now() + retryMs;
      if (!this.#failing) {
        this.#log.warn("The issuer's keys can't be fetched from {url}: {error}", { url, error });
      }
      this.#failing = true;
    }
  }
}

const keysUnavailable = () =>
  unavailable("the keys of the token's issuer can't be fetched, try again", retryMs / 1_000);

type KeySet = Parameters<typeof createLocalJWKSet>[0];

// A redirect is refused, because only the configured url is trusted.
async function fetchSet(url: string): Promise<KeySet> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await fetch(url, { signal, redirect: "error" });
  if (answer.ok) return await answer.json();
  await answer.body?.cancel();
  throw new Error(`status ${answer.status}`);
}
