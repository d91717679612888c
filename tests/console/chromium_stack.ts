// Both services and a Chromium for all tests of a file. On machines without a Chromium these are skipped.
import {
  type Browser,
  chromium,
  inTab,
  startBrowser,
  type Tab,
  type TabOptions,
} from "../support/browser.ts";
import type { Stack } from "../support/stack.ts";

export interface ChromiumStack {
  readonly stack: Stack; // once the tests of the file have begun
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
