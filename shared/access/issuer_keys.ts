import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { unavailable } from "../http/errors.ts";
import type { Log } from "../process/log.ts";
import { linked } from "../telemetry/tracing.ts";

// The public keys of the issuer. They are fetched when a token asks for them, go on while the issuer
// is down, and are fetched again when a token names one that is not among them.

const freshMs = 600_000;
// For so long they go on without the issuer. Whoever could keep us from it would else keep a key alive
// that it has withdrawn.
const usableMs = 86_400_000;
// Anybody can name a key that does not exist.
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
  #notBefore = -Infinity; // the next fetch after one that failed
  #lookAgainAt = -Infinity;

  constructor(url: string, log: Log) {
    this.#url = url;
    this.#log = log;
  }

  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#age > freshMs) await this.#fetch();
    const keys = this.#keys;
    if (keys === undefined || this.#age > usableMs) throw notKnown();
    try {
      return await keys.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (this.#keys === keys) await this.#lookAgain();
      if (this.#keys !== keys && this.#keys !== undefined) {
        return await this.#keys.find(header, token);
      }
      throw this.#failing ? notKnown() : error;
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

  // Once for all who wait.
  #fetch(): Promise<void> {
    if (performance.now() < this.#notBefore) return Promise.resolve();
    return this.#fetching ??= this.#fetchNow().finally(() => this.#fetching = undefined);
  }

  async #fetchNow(): Promise<void> {
    const url = this.#url;
    try {
      const set = await linked("fetch keys", () => [], () => fetchSet(url));
      this.#keys = { find: createLocalJWKSet(set), fetchedAt: performance.now() };
      if (this.#failing) this.#log.info("The issuer's keys are fetched again from {url}", { url });
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

const notKnown = () =>
  unavailable("the keys of the token's issuer can't be fetched, try again", retryMs / 1_000);

type KeySet = Parameters<typeof createLocalJWKSet>[0];

// Elsewhere than at its url is not where the issuer publishes its keys.
async function fetchSet(url: string): Promise<KeySet> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await fetch(url, { signal, redirect: "error" });
  if (answer.ok) return await answer.json();
  await answer.body?.cancel();
  throw new Error(`status ${answer.status}`);
}
