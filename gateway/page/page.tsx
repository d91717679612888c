import type { OpenAPIHono } from "@hono/zod-openapi";
import { fileAnswer, pageAnswer } from "@kenri/shared/console/answers.ts";
import icon from "@kenri/shared/console/icon.svg" with { type: "text" };
import { Page } from "@kenri/shared/http/pages/page.tsx";
import { style } from "@kenri/shared/http/pages/style.ts";
import { refuseMethod } from "@kenri/shared/http/route.ts";
import type { Handler } from "hono";
import type { JSX } from "hono/jsx/jsx-runtime";
import { createHash } from "node:crypto";
import { Account, Entitlements, Match, Notifications, Points } from "./cards.tsx";
import cards from "./cards.js" with { type: "text" };
import match from "./match.js" with { type: "text" };
import { bar, head } from "./frame.tsx";
import pageStyle from "./page.css" with { type: "text" };
import script from "./page.js" with { type: "text" };

// The page of a user: account, entitlements, points, matches and notifications, kept up to date. It is
// the same for everybody; page.js fills it through the public API and shows the one view that applies.

// A browser that has one of the scripts from before an update gets both anew.
const version = createHash("sha256").update(script + cards + match).digest("hex").slice(0, 12);
const versioned = (text: string) => text.replaceAll(/"\.\/(\w+\.js)"/g, `"./$1?v=${version}"`);
const scripts = { "/page.js": script, "/cards.js": cards, "/match.js": match };

export function addPage(app: OpenAPIHono, modes: string[]): void {
  const shown = <UserPage modes={modes} />;
  const routes: Record<string, Handler> = {
    "/": (context) => pageAnswer(context, shown),
    "/page.css": (context) => fileAnswer(context, style + pageStyle, "text/css"),
    "/icon.svg": (context) => fileAnswer(context, icon, "image/svg+xml"),
  };
  for (const [path, text] of Object.entries(scripts)) {
    routes[path] = (context) => fileAnswer(context, versioned(text), "text/javascript");
  }
  for (const [path, answer] of Object.entries(routes)) {
    app.get(path, answer);
    app.all(path, refuseMethod("GET, HEAD"));
  }
}

// Without modes, nothing is configured to match people.
function UserPage({ modes }: { modes: string[] }): JSX.Element {
  return (
    <Page
      title="Your account · Kenri"
      head={
        <>
          {head}
          <script type="module" src={`/page.js?v=${version}`} />
        </>
      }
      bar={bar(<button type="button" class="quiet" id="log-out" hidden>Log out</button>)}
    >
      <main id="main">
        <noscript>
          <p class="note">This page needs JavaScript to show what is yours.</p>
        </noscript>
        <p class="muted" data-view="loading">One moment…</p>
        <LoggedOut />
        <section data-view="suspended" class="door" hidden>
          <h1 tabindex={-1}>Your account is suspended</h1>
          <p>
            You can't use it until it is resumed. This page then shows it again. If you think that
            this is a mistake, please contact us.
          </p>
        </section>
        <section data-view="away" class="door" hidden>
          <h1 tabindex={-1}>Not available</h1>
          <p>Your account can't be shown at the moment. This page tries again by itself.</p>
        </section>
        <section data-view="in" hidden>
          <div class="title">
            <h1 tabindex={-1} id="greeting">Your account</h1>
            <p class="live" id="live" role="status"></p>
          </div>
          <p class="hidden" id="news" role="status"></p>
          <div class="cards">
            <div>
              {modes.length > 0 && <Match modes={modes} />}
              <Points />
              <Entitlements />
            </div>
            <Notifications />
            <Account />
          </div>
        </section>
      </main>
    </Page>
  );
}

function LoggedOut(): JSX.Element {
  return (
    <section data-view="out" class="door" hidden>
      <p class="note" id="why" role="status" hidden></p>
      <h1 tabindex={-1}>See what is yours</h1>
      <p>Your account, your entitlements, your points, and your notifications as they arrive.</p>
      <p>
        <a class="button" href="/login?return_to=/">Log in</a>
      </p>
    </section>
  );
}
