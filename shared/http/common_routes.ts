import { type OpenAPIHono, z } from "@hono/zod-openapi";
import { metrics } from "../telemetry/metrics.ts";
import { scrape } from "../telemetry/scrape.ts";
import { unavailable } from "./errors.ts";
import { errorAnswer } from "./fields.ts";
import { describeApi, type ScopedRoute, type Tag } from "./openapi.ts";
import { apiPage } from "./pages/api_page.tsx";
import { pageAnswer } from "./pages/page.tsx";
import { addRoute } from "./route.ts";

// The routes that every service has: health, metrics and the API description.

// What the service depends on, each with the sentence to answer while it is missing.
export type Checks = Record<string, () => Promise<boolean> | boolean>;

export function addCommonRoutes(
  app: OpenAPIHono,
  { title, tags = [], checks }: { title: string; tags?: Tag[]; checks: Checks },
): void {
  addRoute(app, livezRoute, () => Response.json({ status: "ok" }));
  addRoute(app, readyzRoute, async () => {
    const missing = await failedChecks(checks);
    if (missing.length > 0) throw unavailable(`not ready: ${missing.join(", ")}`);
    return Response.json({ status: "ok" });
  });
  addRoute(app, metricsRoute, async () => {
    const headers = { "Content-Type": metrics.contentType };
    return new Response(await scrape(), { headers });
  });
  // Made for the first request, when all routes have been added.
  const api = once(() => describeApi(app, title, tags));
  const page = once(() => apiPage(api()));
  addRoute(app, openApiRoute, () => Response.json(api()));
  addRoute(app, docsRoute, () => pageAnswer(page()));
}

const json = "application/json";

const livezRoute = publicRoute("/livez", "Liveness", json, "The process runs");

const readyzRoute = publicRoute(
  "/readyz",
  "Readiness",
  json,
  "All that it depends on is available",
);
readyzRoute.responses[503] = errorAnswer("Something is missing; the message names it", {
  SERVICE_UNAVAILABLE: "not ready: NATS can't be reached",
});

const metricsRoute: ScopedRoute = {
  ...publicRoute("/metrics", "Metrics", "text/plain", "In the Prometheus text format"),
  scope: "metrics:read",
};

const openApiRoute = publicRoute(
  "/openapi.json",
  "This description for programs",
  json,
  "OpenAPI 3.1",
);

const docsRoute = publicRoute(
  "/docs",
  "This description for people",
  "text/html",
  "An HTML page",
);

function publicRoute(
  path: string,
  summary: string,
  type: string,
  description: string,
): ScopedRoute {
  const schema = type === json ? z.looseObject({}) : z.string();
  return {
    method: "get",
    path,
    scope: "public",
    summary,
    responses: { 200: { description, content: { [type]: { schema } } } },
  };
}

async function failedChecks(checks: Checks): Promise<string[]> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const passed = await Promise.resolve().then(check).catch(() => false);
      return passed ? [] : [name];
    }),
  );
  return results.flat();
}

function once<Value extends string | object>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => made ??= make();
}
