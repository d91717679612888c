import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";

// What the pages for people have in common.

export const head = (
  <>
    <link rel="stylesheet" href="/page.css" />
    <link rel="icon" href="/icon.svg" type="image/svg+xml" />
  </>
);

export function bar(more?: Child): JSX.Element {
  return (
    <header class="bar">
      <a class="brand" href="/">Kenri</a>
      {more}
    </header>
  );
}
