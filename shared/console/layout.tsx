import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { Page } from "../http/pages/page.tsx";
import type { NamedPage } from "../process/setting_kinds.ts";

// The frame of every page of the console, and the parts that pages are made of.

export interface Site {
  service: string;
  peers: NamedPage[]; // the consoles of other services
  needsSignIn: boolean;
  toneOf: Record<string, Tone>; // of the states that things have in this service
  pages: { path: string; title: string }[];
}

interface PageParts {
  site: Site;
  path: string; // of the page that the navigation marks as the current one
  title: string;
  note?: string | undefined; // the result of the last form
  children: Child;
}

const head = (
  <>
    <link rel="stylesheet" href="/console/style.css" />
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml" />
    <script type="module" src="/console/live.js" />
  </>
);

export function ConsolePage({ site, path, title, note, children }: PageParts): JSX.Element {
  return (
    <Page
      title={`${title} · ${site.service} · Kenri`}
      head={head}
      bar={<Bar {...{ site, path }} />}
    >
      <main id="main">
        <h1>{title}</h1>
        {note && <p class="note" role="status">{note}</p>}
        {children}
      </main>
      <footer class="muted">
        All times are in UTC. The same data is in the <a href="/docs">API</a>, in the{" "}
        <a href="/metrics">metrics</a> and in <code>deno task ops</code>.
      </footer>
    </Page>
  );
}

function Bar({ site, path }: { site: Site; path: string }): JSX.Element {
  const { service, peers, needsSignIn, pages } = site;
  return (
    <div class="bar">
      <header>
        <a class="brand" href="/console">
          Kenri <b>{service}</b>
        </a>
        <nav aria-label="Console">
          {pages.map((page) => (
            <a href={page.path} aria-current={page.path === path ? "page" : undefined}>
              {page.title}
            </a>
          ))}
        </nav>
        {peers.map(({ name, url }) => <a class="peer" href={`${url}/console`}>{name} ↗</a>)}
        {needsSignIn && <a class="peer" href="/console/sign-out">Sign out</a>}
      </header>
    </div>
  );
}

// An element whose content live.js keeps up to date.
export function Live({ name, children }: { name: string; children: Child }): JSX.Element {
  return <div data-live={name}>{children}</div>;
}

export function LiveState(): JSX.Element {
  return (
    <p class="live muted">
      <span data-live-state>
        As of <When at={new Date().toISOString()} />.
      </span>{" "}
      <a href="">Reload</a>
      <button type="button" class="quiet" data-live-pause hidden>Pause</button>
    </p>
  );
}

export function When({ at }: { at: string | null | undefined }): JSX.Element {
  if (!at) return <span class="muted">–</span>;
  const written = at.replace("T", " ").replace(/(\.\d{3})\d*Z$/, "$1");
  return <time datetime={at}>{written}</time>;
}

export type Tone = "good" | "warn" | "bad" | "muted";

// A state is shown by its word, its shape and its colour.
export function State({ tone, word }: { tone: Tone; word: string }): JSX.Element {
  return <span class={`state ${tone}`}>{word}</span>;
}

export function Status({ site, status }: { site: Site; status: string }): JSX.Element {
  return <State tone={site.toneOf[status] ?? "warn"} word={status} />;
}

export function Json({ value, label }: { value: unknown; label: string }): JSX.Element {
  return <pre tabindex={0} role="region" aria-label={label}>{JSON.stringify(value, null, 2)}</pre>;
}

export type Fact = [name: string, value: Child];

export function Facts({ facts }: { facts: (Fact | false)[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.filter((fact) => fact !== false).map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface TableParts {
  label: string;
  columns: string[];
  rows: Child[][];
  none: string; // shown if there are no rows
}

// On a phone each row is a card, so each cell names its column. The roles are explicit because a
// browser drops them if CSS displays a table as something else.
export function Table({ label, columns, rows, none }: TableParts): JSX.Element {
  if (rows.length === 0) return <p class="empty">{none}</p>;
  return (
    <table role="table" aria-label={label}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => <th role="columnheader" scope="col">{column}</th>)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr role="row">
            {row.map((cell, i) => <td role="cell" data-label={columns[i]}>{cell}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function NextPage({ href }: { href: string | undefined }): JSX.Element | null {
  return href
    ? (
      <p class="next">
        <a href={href} rel="next">Next page</a>
      </p>
    )
    : null;
}
