import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Child } from "hono/jsx";
import { signInPath } from "../access/admit.ts";
import type { Authenticator } from "../access/authenticator.ts";
import type { Caller } from "../access/caller.ts";
import { style } from "../http/pages/style.ts";
import type { Looks, ServiceStatus } from "../operators/looks.ts";
import type { Loop } from "../process/loop.ts";
import type { NamedPage } from "../process/setting_kinds.ts";
import { apiOf, type ShowPage } from "./ask.ts";
import { deadLetterPage, deadLetterPath, deadLettersPage } from "./dead_letters_page.tsx";
import type { Site, Tone } from "./layout.tsx";
import { LiveFigures } from "./live.ts";
import { operationsPage, operationsPath } from "./operations_page.tsx";
import { addPages, file, form, get, nobody, post } from "./page_routes.tsx";
import { type Elsewhere, fragmentsOf, overviewFrom, pipelinePage } from "./pipeline_page.tsx";
import { type Counted, readCounters, Samples } from "./samples.ts";
import { searchesBy, timelinePath } from "./search.tsx";
import { confirmPage, confirmPath, deadLettersPath, sendBackNow } from "./send_back_page.tsx";
import { signIn, signInPage, signOut, signOutPage, signOutPath } from "./sign_in_page.tsx";
import { type Stage, statusProblems } from "./stages.tsx";
import { timelinePage } from "./timeline_page.tsx";
import { meaningOfSteps, toneOfStates } from "./words.ts";
import script from "./live.js" with { type: "text" };
import consoleStyle from "./console.css" with { type: "text" };
import icon from "./icon.svg" with { type: "text" };

// The console of one service. It shows what the API of this service returns.

export interface ServiceConsole<Status extends ServiceStatus, Counter extends string> {
  service: string;
  looks: Looks<Status>;
  counters: Record<Counter, Counted>;
  stages(status: Status | undefined, rates: Samples<Counter>): Stage[];
  problems?(status: Status): Child[]; // besides those of the queues
  duringOutageOfNats?: string;
  before?: Elsewhere;
  after?: Elsewhere;
  meaningOfSteps: Record<string, string>; // in a sentence
  toneOfStates: Record<string, Tone>;
  more: { path: string; title: string; page: (site: Site) => ShowPage }[];
  // Of operations; the navigation does not lead there.
  forms?: { path: string; page: (site: Site) => ShowPage; send: (site: Site) => ShowPage }[];
}

// Returns the loop that samples the counters and sends the live figures.
export function addConsole<Status extends ServiceStatus, Counter extends string>(
  app: OpenAPIHono,
  authenticator: Authenticator,
  own: ServiceConsole<Status, Counter>,
  peers: NamedPage[],
): Loop {
  const { service, looks, more, before, after } = own;
  const queues = looks.status?.queues ?? [];
  const layers = looks.deadLetters ?? {};
  const searchBy = searchesBy(looks.timeline?.by ?? []);
  const site: Site = {
    service,
    peers,
    toneOf: { ...toneOfStates, ...own.toneOfStates },
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
      problems: status
        ? [
          ...statusProblems(queues, status, own.duringOutageOfNats),
          ...own.problems?.(status) ?? [],
        ]
        : [],
      queues: queues.map(({ noun, of }) => ({ noun, oldest: status ? of(status).oldest : [] })),
    }));
  const live = new LiveFigures(
    async () => fragmentsOf(await overview()),
    (atMs) => samples.take(atMs),
  );
  addPages(app, site, [
    get("/console", pipelinePage({ site, searchBy, overview, before, after })),
    get(timelinePath, timelinePage(site, searchBy, { ...meaningOfSteps, ...own.meaningOfSteps })),
    ...more.map(({ path, page }) => get(path, page(site))),
    ...own.forms?.flatMap(({ path, page, send }) => form(path, page(site), send(site))) ?? [],
    get(deadLettersPath, deadLettersPage(site, layers)),
    get(deadLetterPath, deadLetterPage(site, layers)),
    ...form(confirmPath, confirmPage(site), sendBackNow(site)),
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
