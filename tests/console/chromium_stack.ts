// Both services and a Chromium for all tests of a file, which are skipped if there is no Chromium.
import {
  type Browser,
  chromium,
  inTab,
  startBrowser,
  type Tab,
  type TabOptions,
} from "./browser.ts";
import type { Stack } from "../support/stack.ts";

export interface ChromiumStack {
  readonly stack: Stack; // available in tests
  withTab(use: (tab: Tab) => Promise<void>, options?: TabOptions): Promise<void>;
}

export function chromiumStack(start: () => Promise<Stack>, ownNames?: string[]): ChromiumStack {
  let stack: Stack;
  let browser: Browser;
  Deno.test.beforeAll(async () => {
    if (!chromium) return;
    stack = await start();
    browser = await startBrowser(ownNames);
  });
  Deno.test.afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });
  return {
    get stack() {
      return stack;
    },
    withTab: (use, options) => inTab(browser, use, options),
  };
}
