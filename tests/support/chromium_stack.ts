// Services and a Chromium for all tests of a file, which are skipped if there is no Chromium.
import {
  type Browser,
  chromium,
  inTab,
  startBrowser,
  type Tab,
  type TabOptions,
} from "./browser.ts";

export interface ChromiumStack<Stack> {
  readonly stack: Stack; // available in tests
  withTab(use: (tab: Tab) => Promise<void>, options?: TabOptions): Promise<void>;
}

export function chromiumStack<Stack extends AsyncDisposable>(
  start: () => Promise<Stack>,
  ownNames?: string[],
): ChromiumStack<Stack> {
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
