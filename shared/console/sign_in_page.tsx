import type { Context } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import { cookieName, needScope, signInPath } from "../access/admit.ts";
import type { Door } from "../access/door.ts";
import { isLoopback } from "../access/loopback.ts";
import { ApiError } from "../errors.ts";
import { Page } from "../pages/page.tsx";
import { pageAnswer, seeOther } from "./answers.ts";
import type { ShowPage } from "./console.tsx";
import { formToken, readForm } from "./forms.ts";
import { ConsolePage, type Site } from "./layout.tsx";

// A browser shows its credential in a cookie. The cookie is the credential itself, so any replica
// knows it, and it ends with the credential.

export function signInPage(site: Site): ShowPage {
  return (context) => site.asksWho ? askWho(context, site) : seeOther(context, "/console");
}

function askWho(context: Context, { service }: Site, problem?: ApiError): Response {
  return pageAnswer(
    context,
    <Page title={`Sign in · ${service} · Kenri`} head={head}>
      <main id="main">
        <h1>Kenri {service}</h1>
        <form class="card stacked" method="post" action={signInPath}>
          {problem && <p class="note bad" role="alert">{problem.message}</p>}
          <input type="hidden" name="token" value={formToken(context)} />
          <label for="credential">Your token</label>
          <input
            id="credential"
            name="credential"
            type="password"
            required
            maxlength={longest}
            autocomplete="current-password"
          />
          <p class="muted">
            It needs the scope <code>debug:read</code>, and to send back{" "}
            <code>operations:write</code>. This browser keeps it until you sign out or close it.
          </p>
          <button type="submit">Sign in</button>
        </form>
      </main>
    </Page>,
    problem?.status ?? 200,
  );
}

const head = (
  <>
    <link rel="stylesheet" href="/console/style.css" />
    <link rel="icon" href="/console/icon.svg" type="image/svg+xml" />
  </>
);

const longest = 3_800; // a browser keeps a cookie of 4 kB, its name and rules included

export function signIn(site: Site, door: Door): ShowPage {
  return async (context) => {
    const form = await readForm(context);
    const credential = form.get("credential")?.trim() ?? "";
    try {
      if (!/^[\x21-\x7e]*$/.test(credential) || credential.length > longest) {
        throw new ApiError("BAD_REQUEST", `a token is at most ${longest} visible ASCII characters`);
      }
      context.set("caller", await door.authenticate(credential));
      needScope(context, "debug:read");
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      return askWho(context, site, error);
    }
    setCookie(context, cookieName, credential, cookieOf(context));
    return seeOther(context, "/console");
  };
}

export const signOutPath = "/console/sign-out";

export function signOutPage(site: Site): ShowPage {
  return (context) => {
    const { name = "", scopes = [] } = context.get("caller") ?? {};
    return pageAnswer(
      context,
      <ConsolePage site={site} path={signOutPath} title="Sign out">
        <form class="card stacked" method="post" action={signOutPath}>
          <p>
            You are <b>{name}</b>, with the scopes {[...scopes].join(", ")}.
          </p>
          <input type="hidden" name="token" value={formToken(context)} />
          <button type="submit">Sign out</button>
        </form>
      </ConsolePage>,
    );
  };
}

export async function signOut(context: Context): Promise<Response> {
  await readForm(context);
  deleteCookie(context, cookieName, cookieOf(context));
  return seeOther(context, signInPath);
}

// Without encryption a cookie goes to this machine only.
function cookieOf({ req }: Context) {
  const { protocol, hostname = "" } = URL.parse(req.url) ?? {};
  const secure = protocol === "https:" || !isLoopback(hostname);
  return { path: "/console", httpOnly: true, sameSite: "Strict", secure } as const;
}
