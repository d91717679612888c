import type { Context } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { ApiError } from "../http/errors.ts";
import { rendered } from "../http/pages/page.tsx";

// The answers of the console. Their headers differ from those of all other answers (protect.ts): a
// page may run and load what comes from the service itself, and nothing may frame it.

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // A stricter policy would hide from the service which page a form comes from.
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

// A minute of caching keeps pages fast and picks up a new version soon.
export function fileAnswer(context: Context, text: string, type: string): Response {
  return context.body(text, 200, {
    ...headers,
    "Content-Type": `${type}; charset=utf-8`,
    "Cache-Control": "max-age=60",
  });
}

// After a form, so that reloading or going back does not send the form again.
export function seeOther(context: Context, path: string): Response {
  return context.body(null, 303, { ...headers, Location: path });
}
