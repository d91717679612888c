import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { requireScope } from "../access/admit.ts";
import type { Scope } from "@kenri/proto/scopes.ts";
import type { Caller } from "../access/caller.ts";
import { ApiError } from "../http/errors.ts";
import { refuseMethod } from "../http/route.ts";
import { fileAnswer, pageAnswer } from "./answers.ts";
import { apiOf, type ShowPage } from "./ask.ts";
import { ConsolePage, type Site } from "./layout.tsx";

// The routes of the console. A page needs a scope, and shows an error as a page.

export interface PageRoute {
  method: "GET" | "POST";
  path: string;
  scope: Scope | "public";
  answer: ShowPage;
}

export function get(path: string, answer: ShowPage): PageRoute {
  return { method: "GET", path, scope: "debug:read", answer };
}

export function post(path: string, answer: ShowPage): PageRoute {
  return { ...get(path, answer), method: "POST" };
}

/** The form of an operation: the page that shows it, and what it sends. */
export function form(path: string, page: ShowPage, send: ShowPage): PageRoute[] {
  return [get(path, page), post(path, send)].map((route) => ({
    ...route,
    scope: "operations:write",
  }));
}

export function file(path: string, text: string, type: string): PageRoute {
  return get(path, (context) => fileAnswer(context, text, type));
}

// The caller of a public page.
export const nobody: Caller = { name: "", scopes: new Set() };

export function addPages(app: OpenAPIHono, site: Site, routes: PageRoute[]): void {
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
    app.all(path, refuseMethod(allow));
  }
}

function errorPage(site: Site, context: Context, error: ApiError): Response {
  const { status, message, headers } = error;
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
  return pageAnswer(
    context,
    <ConsolePage site={site} path="" title={status === 503 ? "Unavailable" : "Error"}>
      <p class="note bad" role="alert">{message}</p>
      <p>
        <a href="/console">Back to the pipeline</a>
      </p>
    </ConsolePage>,
    status,
  );
}
