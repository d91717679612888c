// A gateway with a real issuer, and a browser made of fetch: it keeps cookies and follows no redirect by
// itself.
import assert from "node:assert/strict";
import { type Issuer, startIssuer } from "../../tools/issuer/issuer.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { keep } from "../../tools/servers/evidence.ts";
import { type Account, startAccount } from "./account.ts";
import { startGateway } from "./gateway.ts";

export interface LoginStack extends AsyncDisposable {
  account: Account;
  issuer: Issuer;
  gateway: ServiceProcess;
  url: string; // the gateway's, as browsers know it
  settings: Settings; // to start a replica
}

export async function startLoginStack(
  more: Settings = {},
  moreOfAccount: Settings = {},
): Promise<LoginStack> {
  await using started = new AsyncDisposableStack();
  const [account, issuer] = await Promise.all([startAccount(moreOfAccount), startIssuer()]);
  started.use(account);
  started.use(issuer);
  const url = `http://127.0.0.1:${freePort()}`;
  const settings = {
    GATEWAY_PUBLIC_URL: url,
    GATEWAY_ISSUER: issuer.url,
    GATEWAY_CLIENT_ID: issuer.clientId,
    GATEWAY_CLIENT_SECRET: issuer.clientSecret,
    GATEWAY_RATE_LOGIN: "1000000",
    ...more,
  };
  const port = { GATEWAY_HTTP_PORT: new URL(url).port };
  const gateway = started.use(await startGateway(account, { ...settings, ...port }));
  const stack = started.move();
  return {
    ...{ account, issuer, gateway, url, settings },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export interface Page {
  status: number;
  headers: Headers;
  text: string;
  location: string; // absolute; "" without one
}

interface Cookie {
  name: string;
  value: string;
  path: string;
}

export class Browser {
  cookies: Cookie[] = [];

  async open(url: string, init: RequestInit = {}): Promise<Page> {
    const { pathname } = new URL(url);
    const sent = this.cookies.filter(({ path }) =>
      path === "/" || pathname === path || pathname.startsWith(`${path}/`)
    );
    const headers = new Headers(init.headers);
    if (!headers.has("Accept")) headers.set("Accept", "text/html");
    if (sent.length > 0) {
      headers.set("Cookie", sent.map(({ name, value }) => `${name}=${value}`).join("; "));
    }
    const answer = await fetch(url, { redirect: "manual", ...init, headers });
    for (const line of answer.headers.getSetCookie()) this.#take(line);
    const text = await answer.text();
    keep("answers", text);
    const location = answer.headers.get("Location");
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      location: location === null ? "" : new URL(location, url).href,
    };
  }

  cookie(name: string): string | undefined {
    return this.cookies.find((cookie) => cookie.name === name)?.value;
  }

  /** Begins a login; returns the url of the issuer to which the gateway sends it. */
  async begin(gateway: string, query = ""): Promise<string> {
    const { status, location, text } = await this.open(`${gateway}/login${query}`);
    assert.equal(status, 302, text);
    return location;
  }

  /** Logs in at the issuer; returns the url of the callback, which is not opened. */
  async logInAt(at: string, user: string): Promise<string> {
    const asked = await this.open(at);
    if (!asked.location.includes("/interaction/")) return asked.location; // it is logged in there
    const chosen = await this.open(asked.location, {
      method: "POST",
      body: new URLSearchParams({ user }),
    });
    const back = await this.open(chosen.location);
    assert.match(back.location, /\/login\/callback\?/, back.text);
    return back.location;
  }

  async callback(gateway: string, user = "ann", query = ""): Promise<string> {
    return await this.logInAt(await this.begin(gateway, query), user);
  }

  async logIn(gateway: string, user = "ann", query = ""): Promise<Page> {
    return await this.open(await this.callback(gateway, user, query));
  }

  /** The status of /v1/me. */
  async me(gateway: string): Promise<number> {
    return (await this.open(`${gateway}/v1/me`)).status;
  }

  #take(line: string): void {
    const [first = "", ...attributes] = line.split("; ");
    const [name = "", value = ""] = first.split("=");
    const path = attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? "/";
    this.cookies = this.cookies.filter((known) => known.name !== name || known.path !== path);
    if (value !== "") this.cookies.push({ name, value, path });
  }
}
