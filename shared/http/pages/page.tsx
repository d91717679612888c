import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { createHash } from "node:crypto";
import { style } from "./style.ts";

// The frame of every page. Unless its head refers to files, a page is complete in itself: it
// contains its style, runs no script and loads nothing.

interface PageParts {
  title: string;
  head?: Child;
  bar?: Child; // above the page
  children: Child;
}

const ownStyle = <style dangerouslySetInnerHTML={{ __html: style }} />;

export function Page({ title, head = ownStyle, bar, children }: PageParts): JSX.Element {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        {head}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        {bar}
        <div class="page">{children}</div>
      </body>
    </html>
  );
}

const styleHash = createHash("sha256").update(style).digest("base64");

const headers = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy":
    `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; ` +
    "frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
};

export function pageAnswer(page: string): Response {
  return new Response(page, { headers });
}

export function rendered(page: JSX.Element): string {
  return `<!DOCTYPE html>\n${page}`;
}
