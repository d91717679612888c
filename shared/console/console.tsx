import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Child } from "hono/jsx";
import { requireScope, signInPath } from "../access/admit.ts";
import type { Caller, Scope } from "../access/caller.ts";
import type { Authenticator } from "../access/authenticator.ts";
import { ApiError } from "../http/errors.ts";
import type { Loop } from "../process/loop.ts";
import { style } from "../http/pages/style.ts";
import { fileAnswer, pageAnswer } from "./answers.ts";
import { type Api, apiOf } from "./ask.ts";
import {
  deadLetterPage,
  deadLetterPath,
  deadLettersPage,
  type Layers,
} from "./dead_letters_page.tsx";
import { ConsolePage, type Site } from "./layout.tsx";
import { LiveFigures } from "./live.ts";
import { operationsPage, operationsPath } from "./operations_page.tsx";
import { fragmentsOf, type Look, lookAround, pipelinePage } from "./pipeline_page.tsx";
import { type Counted, readCounters, Samples } from "./samples.ts";
import { confirmPage, confirmPath, deadLettersPath, sendBackNow } from "./send_back_page.tsx";
import { signIn, signInPage, signOut, signOutPage, signOutPath } from "./sign_in_page.tsx";
import { type SearchBy, timelinePage, timelinePath } from "./timeline_page.tsx";
import script from "./live.js" with { type: "text" };
import consoleStyle from "./console.css" with { type: "text" };
import icon from "./icon.svg" with { type: "text" };

// The console of one service: its own half, by what its own API answers.

export type ShowPage = (context: Context, api: Api) => Promise<Response> | Response;

export interface Route {
  method: "GET" | "POST";
  path: string;
  scope: Scope | "public";
  answer: ShowPage;
}

export interface Half<Status, Counter extends string> {
  site: Omit<Site, "pages" | "asksWho">;
  ways: SearchBy[];
  layers: Layers;
  counters: Record<Counter, Counted>;
  look(status: Status | undefined, samples: Samples<Counter>): Look;
  before?: (site: Site) => Child; // in the picture
  after?: (site: Site) => Child;
  more: { path: string; title: string; page: (site: Site) => ShowPage }[];
}

// Returns the loop that keeps its figures.
export function addConsole<Status, Counter extends string>(
  app: OpenAPIHono,
  authenticator: Authenticator,
  half: Half<Status, Counter>,
): Loop {
  const { ways, layers, more } = half;
  const site: Site = {
    ...half.site,
    asksWho: !authenticator.open,
    pages: [
      { path: "/console", title: "Pipeline" },
      { path: timelinePath, title: "Timeline" },
      ...more,
      { path: deadLettersPath, title: "Dead letters" },
      { path: operationsPath, title: "Record" },
    ],
  };
  const api = apiOf(app, itself);
  const samples = new Samples(readCounters(half.counters));
  const look = () =>
    lookAround(
      () => api.get<Status>(`/debug/${site.service}/status`),
      (status) => half.look(status, samples),
    );
  const live = new LiveFigures(
    async () => fragmentsOf(await look()),
    (atMs) => samples.take(atMs),
  );
  const around = { before: half.before?.(site), after: half.after?.(site) };
  addPages(app, site, [
    get("/console", pipelinePage({ site, ways, look, ...around })),
    get(timelinePath, timelinePage(site, ways)),
    ...more.map(({ path, page }) => get(path, page(site))),
    get(deadLettersPath, deadLettersPage(site, layers)),
    get(deadLetterPath, deadLetterPage(site, layers)),
    { ...get(confirmPath, confirmPage(site)), scope: "operations:write" },
    { ...post(confirmPath, sendBackNow(site)), scope: "operations:write" },
    get(operationsPath, operationsPage(site)),
    get(
      "/console/live",
      (context) => live.listen(context.get("caller") ?? nobody, context.req.method === "HEAD"),
    ),
    file("/console/live.js", script, "text/javascript"),
    { ...file("/console/style.css", style + consoleStyle, "text/css"), scope: "public" },
    { ...file("/console/icon.svg", icon, "image/svg+xml"), scope: "public" },
    { ...get(signInPath, signInPage(site)), scope: "public" },
    { ...post(signInPath, signIn(site, authenticator.sessions)), scope: "public" },
    get(signOutPath, signOutPage(site)),
    post(signOutPath, signOut(authenticator.sessions)),
  ]);
  return { name: "console", run: (signal) => live.run(signal) };
}

// What it shows to all who watch, each of whom may see it.
const itself: Caller = { name: "console", scopes: new Set(["debug:read"]) };

const get = (path: string, answer: ShowPage): Route => ({
  method: "GET",
  path,
  scope: "debug:read",
  answer,
});

const post = (path: string, answer: ShowPage): Route => ({ ...get(path, answer), method: "POST" });

function file(path: string, text: string, type: string): Route {
  return get(path, (context) => fileAnswer(context, text, type));
}

function addPages(app: OpenAPIHono, site: Site, routes: Route[]): void {
  for (const { method, path, scope, answer } of routes) {
    app.on(method, path, async (context) => {
      try {
        if (scope !== "public") requireScope(context, scope);
        return await answer(context, apiOf(app, context.get("caller") ?? nobody));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return errorPage(site, context, error);
      }
    });
  }
  for (const [path, ofPath] of Map.groupBy(routes, ({ path }) => path)) {
    const allow = ofPath.map(({ method }) => method === "GET" ? "GET, HEAD" : method).join(", ");
    app.all(path, ({ req }) => {
      throw new ApiError("METHOD_NOT_ALLOWED", `${req.method} is not allowed here, only ${allow}`, {
        Allow: allow,
      });
    });
  }
}

// On a public page.
const nobody: Caller = { name: "", scopes: new Set() };

function errorPage(site: Site, context: Context, error: ApiError): Response {
  const { status, message, headers } = error;
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
  return pageAnswer(
    context,
    <ConsolePage site={site} path="" title={status === 503 ? "Not now" : "That did not work"}>
      <p class="note bad" role="alert">{message}</p>
      <p>
        <a href="/console">To the pipeline</a>
      </p>
    </ConsolePage>,
    status,
  );
}
