import type { Context } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import { requireScope, signInPath } from "../access/admit.ts";
import type { SignIns } from "../access/authenticator.ts";
import type { CookieNames } from "../access/sessions.ts";
import { isLoopback } from "../access/loopback.ts";
import { ApiError } from "../http/errors.ts";
import { Page } from "../http/pages/page.tsx";
import { pageAnswer, seeOther } from "./answers.ts";
import type { ShowPage } from "./ask.ts";
import { formToken, readForm } from "./forms.ts";
import { ConsolePage, type Site } from "./layout.tsx";

// A person signs in with a credential. The browser keeps only a session (sessions.ts), never the
// credential.

export function signInPage(site: Site): ShowPage {
  return (context) =>
    site.needsSignIn ? signInAnswer(context, site) : seeOther(context, "/console");
}

function signInAnswer(context: Context, { service }: Site, problem?: ApiError): Response {
  return pageAnswer(
    context,
    <Page title={`Sign in · ${service} · Kenri`} head={head}>
      <main id="main">
        <h1>Kenri {service}</h1>
        <form class="card stacked" method="post" action={signInPath}>
          {problem && <p class="note bad" role="alert">{problem.message}</p>}
          <input type="hidden" name="token" value={formToken(context)} />
          <label for="credential">Token</label>
          <input
            id="credential"
            name="credential"
            type="password"
            required
            maxlength={longest}
            autocomplete="current-password"
          />
          <p class="muted">
            It needs the scope <code>debug:read</code>, and <code>operations:write</code>{" "}
            to send dead letters back. You stay signed in until you sign out or close this browser,
            for eight hours at most.
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

const longest = 8_000; // characters; a form may have 16 KiB

export function signIn(site: Site, authenticator: SignIns | undefined): ShowPage {
  return async (context) => {
    if (authenticator === undefined) return seeOther(context, "/console");
    const cookie = cookieFor(context, authenticator.cookies);
    const form = await readForm(context);
    const credential = form.get("credential")?.trim() ?? "";
    try {
      if (!/^[\x21-\x7e]*$/.test(credential) || credential.length > longest) {
        throw new ApiError("BAD_REQUEST", `a token is at most ${longest} visible ASCII characters`);
      }
      const { caller, session } = await authenticator.begin(credential, cookie.name);
      context.set("caller", caller);
      requireScope(context, "debug:read");
      setCookie(context, cookie.name, session, cookie.rules);
      return seeOther(context, "/console");
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      return signInAnswer(context, site, error);
    }
  };
}

export const signOutPath = "/console/sign-out";

export function signOutPage(site: Site): ShowPage {
  return (context) => {
    if (!site.needsSignIn) return seeOther(context, "/console");
    const { name = "", scopes = [] } = context.get("caller") ?? {};
    return pageAnswer(
      context,
      <ConsolePage site={site} path={signOutPath} title="Sign out">
        <form class="card stacked" method="post" action={signOutPath}>
          <p>
            You are signed in as <b>{name}</b>, with the scopes {[...scopes].join(", ")}.
          </p>
          <input type="hidden" name="token" value={formToken(context)} />
          <button type="submit">Sign out</button>
        </form>
      </ConsolePage>,
    );
  };
}

export function signOut(authenticator: SignIns | undefined): ShowPage {
  return async (context) => {
    await readForm(context);
    if (authenticator) {
      deleteCookie(context, authenticator.cookies.encrypted, rulesOf(true));
      deleteCookie(context, authenticator.cookies.local, rulesOf(false));
    }
    return seeOther(context, signInPath);
  };
}

// Without TLS, a cookie is set only for a browser on this machine. The Origin header decides,
// because a proxy that ends TLS may call the service on a loopback address.
function cookieFor({ req }: Context, cookies: CookieNames) {
  const { protocol, hostname = "" } = URL.parse(req.header("Origin") ?? req.url) ?? {};
  const encrypted = protocol !== "http:" || !isLoopback(hostname);
  return { name: encrypted ? cookies.encrypted : cookies.local, rules: rulesOf(encrypted) };
}

// A browser accepts a cookie named __Host-… only for the path /.
function rulesOf(encrypted: boolean) {
  const path = encrypted ? "/" : "/console";
  return { path, httpOnly: true, sameSite: "Strict", secure: encrypted } as const;
}
