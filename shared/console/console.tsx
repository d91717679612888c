import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Child } from "hono/jsx";
import { signInPath } from "../access/admit.ts";
import type { Authenticator } from "../access/authenticator.ts";
import type { Caller } from "../access/caller.ts";
import { style } from "../http/pages/style.ts";
import type { Loop } from "../process/loop.ts";
import { apiOf, type ShowPage } from "./ask.ts";
import {
  deadLetterPage,
  deadLetterPath,
  deadLettersPage,
  type Layers,
} from "./dead_letters_page.tsx";
import type { Site } from "./layout.tsx";
import { LiveFigures } from "./live.ts";
import { operationsPage, operationsPath } from "./operations_page.tsx";
import { addPages, file, get, nobody, post } from "./page_routes.tsx";
import { fragmentsOf, overviewFrom, pipelinePage } from "./pipeline_page.tsx";
import { type Counted, readCounters, Samples } from "./samples.ts";
import { type SearchBy, timelinePath } from "./search.tsx";
import { confirmPage, confirmPath, deadLettersPath, sendBackNow } from "./send_back_page.tsx";
import { signIn, signInPage, signOut, signOutPage, signOutPath } from "./sign_in_page.tsx";
import { type Queue, queueProblems, type QueueStatus, type Stage } from "./stages.tsx";
import { timelinePage } from "./timeline_page.tsx";
import script from "./live.js" with { type: "text" };
import consoleStyle from "./console.css" with { type: "text" };
import icon from "./icon.svg" with { type: "text" };

// The console of one service. It shows what the API of this service returns.

export interface ServiceConsole<Status extends QueueStatus, Counter extends string> {
  site: Pick<Site, "service" | "peer" | "peerUrl">;
  searchBy: SearchBy[];
  layers: Layers;
  counters: Record<Counter, Counted>;
  queue: Queue;
  stages(status: Status | undefined, rates: Samples<Counter>): Stage[];
  problems?(status: Status): Child[]; // besides those of the queue
  before?: string; // what the peer does before the first stage
  after?: string; // and after the last one
  more: { path: string; title: string; page: (site: Site) => ShowPage }[];
}

// Returns the loop that samples the counters and sends the live figures.
export function addConsole<Status extends QueueStatus, Counter extends string>(
  app: OpenAPIHono,
  authenticator: Authenticator,
  own: ServiceConsole<Status, Counter>,
): Loop {
  const { searchBy, layers, queue, more } = own;
  const site: Site = {
    ...own.site,
    needsSignIn: !authenticator.open,
    pages: [
      { path: "/console", title: "Pipeline" },
      { path: timelinePath, title: "Timeline" },
      ...more,
      { path: deadLettersPath, title: "Dead letters" },
      { path: operationsPath, title: "Operations" },
    ],
  };
  const api = apiOf(app, consoleItself);
  const samples = new Samples(readCounters(own.counters));
  const overview = () =>
    overviewFrom(() => api.get<Status>(`/debug/${site.service}/status`), (status) => ({
      stages: own.stages(status, samples),
      problems: status ? [...queueProblems(queue, status), ...own.problems?.(status) ?? []] : [],
      oldest: status?.oldest ?? [],
      noun: queue.noun,
    }));
  const live = new LiveFigures(
    async () => fragmentsOf(await overview()),
    (atMs) => samples.take(atMs),
  );
  const { before, after } = own;
  addPages(app, site, [
    get("/console", pipelinePage({ site, searchBy, overview, before, after })),
    get(timelinePath, timelinePage(site, searchBy)),
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

// Reads the figures that are shown to everyone who may see the pipeline.
const consoleItself: Caller = { name: "console", scopes: new Set(["debug:read"]) };
