import { IssuerKeys } from "@kenri/shared/access/issuer_keys.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { Trouble } from "@kenri/shared/process/trouble.ts";
import * as openid from "openid-client";
import type { IssuerOptions } from "../config.ts";
import { apiError } from "../errors.ts";
import { failureOf, LoginRefused } from "./failures.ts";
import { fetchWithin } from "./fetch_within.ts";

// The OpenID provider at which users log in.

const freshMs = 600_000; // for so long the description of the issuer is not fetched again
const retryMs = 2_000;
const deadlineMs = 5_000; // for all requests of one login

export interface Secrets {
  state: string;
  nonce: string;
  verifier: string; // of PKCE
}

export type Claims = openid.IDToken;

export interface Verification {
  expected: { issuer: string; audience: string };
  keys: IssuerKeys;
  namesSessions: boolean;
}

interface Known {
  metadata: openid.ServerMetadata;
  keys: IssuerKeys; // for logout tokens; a login fetches the keys itself
  fetchedAt: number;
}

type Step = "begin" | "end"; // only the end of a login asks for tokens and keys

export class Issuer {
  readonly #options: IssuerOptions;
  readonly #log: Log;
  readonly #trouble: Trouble;
  #known: Known | undefined;
  #finding: Promise<Known> | undefined;
  #notBefore = -Infinity; // no further search before this time, after one has failed

  constructor(options: IssuerOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    this.#trouble = new Trouble(
      (reason) => log.warn("Nobody can log in, because the issuer fails: {reason}", { reason }),
      () => log.info("The issuer answers again"),
    );
  }

  /** Where the browser is sent to log in. */
  async loginUrl(redirectUri: string, { state, nonce, verifier }: Secrets): Promise<URL> {
    return await this.#with("begin", async (config) =>
      openid.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: "openid email profile",
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }));
  }

  /**
   * Who has logged in, by the code in the url with which the browser came back. Throws LoginRefused if
   * that can't be believed, and an ApiError if the issuer can't be asked.
   */
  async claimsBy(callback: URL, { state, nonce, verifier }: Secrets): Promise<Claims> {
    return await this.#with("end", async (config) => {
      const tokens = await openid.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new LoginRefused("there is no ID token");
      return { ...await infoOf(config, tokens.access_token, claims), ...claims };
    });
  }

  /** What logout tokens are verified with, and whether ID tokens name the sessions that those may name. */
  async verification(): Promise<Verification> {
    const { metadata, keys } = await this.#find().catch((error) => {
      throw this.#judged("begin", error);
    });
    return {
      expected: { issuer: metadata.issuer, audience: this.#options.clientId },
      keys,
      namesSessions: metadata["backchannel_logout_session_supported"] === true,
    };
  }

  // Each login has a configuration of its own, and with it no keys of an earlier one: a new key of the
  // issuer is accepted at once, and one that it has withdrawn no longer.
  async #with<Result>(
    step: Step,
    use: (config: openid.Configuration) => Promise<Result>,
  ): Promise<Result> {
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const { metadata } = await this.#find();
      const result = await use(this.#configuration(metadata, deadline));
      this.#trouble.works(step);
      return result;
    } catch (error) {
      throw this.#judged(step, error);
    }
  }

  #judged(step: Step, error: unknown): LoginRefused | ApiError {
    if (error instanceof ApiError) return error;
    const failure = failureOf(error);
    if (failure instanceof LoginRefused) return failure;
    this.#trouble.fails(step, failure);
    return issuerUnavailable();
  }

  #configuration(metadata: openid.ServerMetadata, deadline: AbortSignal): openid.Configuration {
    const { clientId, clientSecret } = this.#options;
    const config = new openid.Configuration(
      metadata,
      clientId,
      undefined,
      authenticationOf(clientSecret, metadata),
    );
    config[openid.customFetch] = (url, init) => fetchWithin(deadline, url, init);
    openid.enableNonRepudiationChecks(config); // without this, no signature is verified
    if (this.#isPlain) openid.allowInsecureRequests(config);
    return config;
  }

  // The settings allow this only on the loopback.
  get #isPlain(): boolean {
    return this.#options.url.startsWith("http:");
  }

  // One request serves all logins that wait for it.
  #find(): Promise<Known> {
    const known = this.#known;
    const now = performance.now();
    if (known && now - known.fetchedAt < freshMs) return Promise.resolve(known);
    if (now < this.#notBefore) return Promise.reject(issuerUnavailable());
    return this.#finding ??= this.#discover().finally(() => this.#finding = undefined);
  }

  async #discover(): Promise<Known> {
    const { url, clientId } = this.#options;
    try {
      const config = await openid.discovery(new URL(url), clientId, undefined, undefined, {
        execute: this.#isPlain ? [openid.allowInsecureRequests] : [],
        [openid.customFetch]: (at, init) => fetchWithin(AbortSignal.timeout(deadlineMs), at, init),
      });
      const metadata = config.serverMetadata();
      const keysUrl = metadata.jwks_uri;
      if (keysUrl === undefined) throw new Error("its description names no keys");
      const keys = this.#known?.metadata.jwks_uri === keysUrl
        ? this.#known.keys
        : new IssuerKeys(keysUrl, this.#log);
      return this.#known = { metadata, keys, fetchedAt: performance.now() };
    } catch (error) {
      this.#notBefore = performance.now() + retryMs;
      const failure = failureOf(error);
      throw failure instanceof LoginRefused ? new Error("it describes itself wrongly") : error;
    }
  }
}

// Many issuers say only here what a user's name is. Without one the user can log in as well.
async function infoOf(
  config: openid.Configuration,
  accessToken: string,
  { sub, name, email }: Claims,
): Promise<Partial<openid.UserInfoResponse>> {
  const isComplete = name !== undefined || email !== undefined;
  if (isComplete || !config.serverMetadata().userinfo_endpoint) return {};
  try {
    const { sid: _, ...info } = await openid.fetchUserInfo(config, accessToken, sub);
    return info;
  } catch {
    return {};
  }
}

// Without a statement of the issuer, the standard says that it is Basic.
function authenticationOf(
  secret: string | undefined,
  { token_endpoint_auth_methods_supported: methods }: openid.ServerMetadata,
): openid.ClientAuth {
  if (secret === undefined) return openid.None();
  const isPost = methods?.includes("client_secret_basic") === false;
  return isPost ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret);
}

export function issuerUnavailable(): ApiError {
  return apiError("ISSUER_UNAVAILABLE", "nobody can log in right now, try again in a moment", {
    "Retry-After": `${retryMs / 1_000}`,
  });
}
