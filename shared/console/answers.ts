import type { Context } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { ApiError } from "../http/errors.ts";
import { rendered } from "../http/pages/page.tsx";

// The answers of the console, with what differs from all others (protect.ts). Nothing runs, loads or
// frames what does not come from the service itself.

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // With less the browser would not say where a form comes from.
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

type PageStatus = 200 | ApiError["status"];

export function pageAnswer(
  context: Context,
  page: JSX.Element,
  status: PageStatus = 200,
): Response {
  return context.html(rendered(page), status, headers);
}

// Of the service's own; a new version of it is asked for again after a minute.
export function fileAnswer(context: Context, text: string, type: string): Response {
  return context.body(text, 200, {
    ...headers,
    "Content-Type": `${type}; charset=utf-8`,
    "Cache-Control": "max-age=60",
  });
}

// After a form: reloading or going back does not send it again.
export function seeOther(context: Context, path: string): Response {
  return context.body(null, 303, { ...headers, Location: path });
}
