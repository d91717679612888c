// A real Chromium without a window, driven over its own protocol: it does what a person does, and
// reports what the browser complains about.
import { connect, type Connection, type Result } from "./devtools.ts";

// The one that can't open a window comes first: it uses half the processor time.
const names = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "chrome",
];

/** Undefined if none is installed; tests that need it are then skipped. */
export const chromium = await findChromium();

export function inBrowser(name: string, test: () => Promise<void>): void {
  // All tests share one browser, so a test may get events from before its start.
  const shared = { sanitizeOps: false, sanitizeResources: false };
  Deno.test({ name, ignore: !chromium, fn: test, ...shared });
}

async function findChromium(): Promise<string | undefined> {
  for (const name of names) {
    const found = await new Deno.Command("which", { args: [name], stderr: "null" }).output()
      .catch(() => undefined);
    if (found?.success) return new TextDecoder().decode(found.stdout).trim();
  }
  return undefined;
}

export interface TabOptions {
  width?: number;
  height?: number;
  dark?: boolean;
  scripts?: boolean;
}

export interface Cookie {
  name: string;
  value: string;
  path: string;
  httpOnly: boolean;
  secure: boolean;
  sameSite?: string;
}

export interface Tab {
  /** Errors of scripts, what could not be loaded, and what the Content-Security-Policy refused. */
  problems: string[];
  /** Dialogs that a page opened, and its calls of `canary(…)`, which every page has. */
  alarms: string[];
  /** The origins of all requests. */
  origins: Set<string>;
  /** The addresses that it went to, also those that led on to others. */
  visited: string[];
  goto(url: string): Promise<void>;
  /** Does something that leads to another page, and waits for that page. */
  leave(action: () => Promise<unknown>): Promise<void>;
  // deno-lint-ignore no-explicit-any
  evaluate(expression: string): Promise<any>;
  press(key: "Tab" | "Enter" | "Space"): Promise<void>;
  type(text: string): Promise<void>;
  screenshot(): Promise<Uint8Array>;
  /** Those of all sites. */
  cookies(): Promise<Cookie[]>;
  setCookie(cookie: Partial<Cookie> & { url: string; name: string; value: string }): Promise<void>;
  setOffline(offline: boolean): Promise<void>;
  /** A tab of the same person, with the same cookies. */
  openBeside(): Promise<Tab>;
  close(): Promise<void>;
}

export interface Browser extends AsyncDisposable {
  open(options?: TabOptions): Promise<Tab>;
}

/** `ownNames` resolve to this machine, as names of an attacker may. */
export async function startBrowser(ownNames: string[] = []): Promise<Browser> {
  const folder = await Deno.makeTempDir({ prefix: "kenri-chromium-" });
  const child = new Deno.Command(chromium ?? "chromium", {
    args: [
      ...["--headless=new", "--remote-debugging-port=0", `--user-data-dir=${folder}`],
      ...["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"],
      ...["--hide-scrollbars", "--disable-background-networking", "--lang=en"],
      `--host-resolver-rules=${ownNames.map((name) => `MAP ${name} 127.0.0.1`).join()}`,
      "about:blank",
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const { url, rest } = await debuggerUrl(child.stderr);
  const connection = await connect(url);
  return {
    open: (options = {}) => openTab(connection, options),
    async [Symbol.asyncDispose]() {
      await connection.send("Browser.close").catch(() => {});
      await child.status;
      await connection.close();
      await rest;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

export async function inTab(
  browser: Browser,
  use: (tab: Tab) => Promise<void>,
  options: TabOptions = {},
): Promise<void> {
  const tab = await browser.open(options);
  try {
    await use(tab);
  } finally {
    await tab.close();
  }
}

async function debuggerUrl(stderr: ReadableStream<Uint8Array>) {
  const found = Promise.withResolvers<string>();
  let said = "";
  const reading = (async () => {
    for await (const text of stderr.pipeThrough(new TextDecoderStream() as never)) {
      said += text;
      const [, url] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (url) found.resolve(url);
    }
    found.reject(new Error(`Chromium ended: ${said}`));
  })();
  return { url: await found.promise, rest: reading };
}

const keys = {
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  Space: { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
};

type Seen = Pick<Tab, "problems" | "alarms" | "origins" | "visited">;

function note({ problems, alarms, origins, visited }: Seen, method: string, params: Result): void {
  if (method === "Runtime.exceptionThrown") problems.push(params.exceptionDetails.text);
  if (method === "Log.entryAdded" && params.entry.level === "error") {
    problems.push(`${params.entry.text} ${params.entry.url ?? ""}`);
  }
  if (method === "Runtime.consoleAPICalled" && params.type === "error") {
    problems.push(JSON.stringify(params.args));
  }
  if (method === "Runtime.bindingCalled") alarms.push(params.payload);
  if (method === "Page.javascriptDialogOpening") alarms.push(`${params.type} ${params.message}`);
  if (method !== "Network.requestWillBeSent") return;
  origins.add(new URL(params.request.url).origin);
  if (params.type === "Document") visited.push(params.request.url);
}

async function openTab(connection: Connection, options: TabOptions): Promise<Tab> {
  const { browserContextId } = await connection.send("Target.createBrowserContext");
  return await openTabIn(browserContextId, connection, options);
}

async function openTabIn(
  browserContextId: string,
  connection: Connection,
  options: TabOptions,
): Promise<Tab> {
  const { targetId } = await connection.send("Target.createTarget", {
    url: "about:blank",
    browserContextId,
  });
  const { sessionId } = await connection.send("Target.attachToTarget", { targetId, flatten: true });
  const send = (method: string, params?: Result) => connection.send(method, params, sessionId);
  const seen: Seen = { problems: [], alarms: [], origins: new Set(), visited: [] };
  let loaded = Promise.withResolvers<void>();
  connection.listen(sessionId, (method, params) => {
    if (method === "Page.loadEventFired") loaded.resolve();
    if (method === "Page.javascriptDialogOpening") {
      void send("Page.handleJavaScriptDialog", { accept: true });
    }
    note(seen, method, params);
  });
  await prepare(send, options);
  const leave = async (action: () => Promise<unknown>) => {
    loaded = Promise.withResolvers<void>();
    await action();
    await loaded.promise;
  };
  return {
    ...seen,
    leave,
    goto: (url) => leave(() => send("Page.navigate", { url })),
    async evaluate(expression) {
      const { result, exceptionDetails } = await send("Runtime.evaluate", {
        expression,
        awaitPromise: true,
        returnByValue: true,
      });
      if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
      return result.value;
    },
    async press(key) {
      await send("Input.dispatchKeyEvent", { type: "keyDown", ...keys[key] });
      await send("Input.dispatchKeyEvent", { type: "keyUp", ...keys[key] });
    },
    type: (text) => send("Input.insertText", { text }),
    async screenshot() {
      const { data } = await send("Page.captureScreenshot", { format: "png" });
      return Uint8Array.fromBase64(data);
    },
    cookies: async () => (await send("Network.getAllCookies")).cookies,
    setCookie: async (cookie) => void await send("Network.setCookie", cookie),
    setOffline: (offline) =>
      send("Network.emulateNetworkConditions", {
        ...{ offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 },
      }),
    openBeside: () => openTabIn(browserContextId, connection, options),
    close: async () => {
      await connection.send("Target.disposeBrowserContext", { browserContextId });
    },
  };
}

type Send = (method: string, params?: Result) => Promise<Result>;

async function prepare(
  send: Send,
  { width = 1280, height = 900, dark = false, scripts = true }: TabOptions,
): Promise<void> {
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  await send("Runtime.addBinding", { name: "canary" });
  await send("Emulation.setDeviceMetricsOverride", {
    width,
    height,
    deviceScaleFactor: 1,
    mobile: width < 600,
  });
  await send("Emulation.setEmulatedMedia", {
    features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }],
  });
  await send("Emulation.setScriptExecutionDisabled", { value: !scripts });
}
