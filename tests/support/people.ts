// All services behind two replicas of the gateway, with an issuer at which people log in.
import assert from "node:assert/strict";
import { type Issuer, startIssuer } from "../../tools/issuer/issuer.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Account, startAccount } from "./account.ts";
import type { Tab, TabOptions } from "./browser.ts";
import type { ChromiumStack } from "./chromium_stack.ts";
import { startGateway } from "./gateway.ts";
import { type Stack, startStack } from "./stack.ts";

export interface People extends AsyncDisposable {
  url: string; // where people reach the gateway
  other: ServiceProcess; // the other replica
  issuer: Issuer;
  account: Account;
  stack: Stack;
}

export async function startPeople(
  more: { gateway?: Settings; notification?: Settings } = {},
): Promise<People> {
  await using parts = new AsyncDisposableStack();
  const issuer = parts.use(await startIssuer());
  const account = parts.use(await startAccount());
  const stack = parts.use(await startStack(more));
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    GATEWAY_PUBLIC_URL: url,
    GATEWAY_ISSUER: issuer.url,
    GATEWAY_CLIENT_ID: issuer.clientId,
    GATEWAY_CLIENT_SECRET: issuer.clientSecret,
    GATEWAY_ENTITLEMENT_URL: stack.entitlement.url,
    GATEWAY_NOTIFICATION_URL: stack.notification.url,
    GATEWAY_RATE_LOGIN: "1000", // all tests of a file come from one address
    ...more.gateway,
  };
  parts.use(await startGateway(account, { ...settings, GATEWAY_HTTP_PORT: `${port}` }));
  const other = parts.use(await startGateway(account, settings));
  const moved = parts.move();
  return {
    ...{ url, other, issuer, account, stack },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

/** Does what a person does to log in, and waits for the own page. Returns the user's id. */
export async function logInAs(
  tab: Tab,
  { url }: Pick<People, "url">,
  name: string,
): Promise<string> {
  await toIssuer(tab, url);
  await chooseUser(tab, name);
  // On a busy machine a service may be too slow for a login. Then a person tries again.
  for (let tries = 0; tries < 3 && /Try again/.test(await textOf(tab)); tries++) {
    await tab.leave(() => tab.evaluate(`document.querySelector("a.button").click()`));
  }
  await untilShown(tab, "in");
  return await tab.evaluate(`document.getElementById("user-id").innerText`);
}

/** From the page to the issuer. */
export async function toIssuer(tab: Tab, url: string): Promise<void> {
  await tab.goto(url);
  await untilShown(tab, "out");
  await tab.leave(() => tab.evaluate(`document.querySelector("a[href^='/login']").click()`));
}

/** At the issuer, by the field for any user. Waits for the page to which this leads. */
export async function chooseUser(tab: Tab, name: string): Promise<void> {
  await tab.leave(() =>
    tab.evaluate(`(() => {
      const field = document.querySelector("input[name=user]");
      field.value = ${JSON.stringify(name)};
      field.form.requestSubmit();
    })()`)
  );
}

export type View = "out" | "in" | "suspended" | "away";

export async function untilShown(tab: Tab, view: View): Promise<void> {
  const isShown = `document.querySelector("[data-view]:not([hidden])")?.dataset.view === "${view}"`;
  await untilTrue(tab, `the page shows "${view}"`, () => tab.evaluate(isShown));
}

export const textOf = (tab: Tab): Promise<string> => tab.evaluate("document.body.innerText");

export async function untilSays(tab: Tab, text: RegExp, withinMs?: number): Promise<void> {
  const isSaid = async () => text.test(await textOf(tab));
  await untilTrue(tab, `the page says ${text}`, isSaid, withinMs);
}

/** A failure shows the page. */
async function untilTrue(
  tab: Tab,
  what: string,
  isTrue: () => Promise<boolean>,
  withinMs?: number,
): Promise<void> {
  try {
    await until(what, isTrue, withinMs);
  } catch (error) {
    const [last] = tab.visited.slice(-1);
    throw new Error(`${error}. At ${last?.replace(/\?.*/, "")} it says: ${await textOf(tab)}`);
  }
}

// A browser reports each refusal and each lost connection; what else it reports is a fault of a page.
// It gives up requests when an interface of the machine appears or goes, as those of containers do.
const reported =
  /the server responded with a status of|ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/;

/** A tab in which nothing may go wrong. */
export function pagesOf(people: ChromiumStack<People>): ChromiumStack<People>["withTab"] {
  return (use, options: TabOptions = {}) =>
    people.withTab(async (tab) => {
      await use(tab);
      assert.deepEqual(tab.problems.filter((problem) => !reported.test(problem)), []);
      assert.deepEqual(tab.alarms, []);
    }, options);
}

export const textById = (tab: Tab, id: string): Promise<string> =>
  tab.evaluate(`document.getElementById("${id}").innerText`);
