import { wantsPage } from "@kenri/shared/access/admit.ts";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { Page } from "@kenri/shared/http/pages/page.tsx";
import type { Handler } from "hono";
import { Brand, head } from "./page.tsx";

// A browser that goes to a login and fails gets a page; a program gets the error as JSON.

const titles: Record<string, string> = {
  LOGIN_FAILED: "The login did not work",
  ACCOUNT_INACTIVE: "Your account is suspended",
  TOO_MANY_REQUESTS: "Too many logins",
};

const sentences: Record<string, string> = {
  LOGIN_FAILED: "You are not logged in. It was cancelled, took too long, or was not valid.",
  ACCOUNT_INACTIVE: "You can log in again when it is resumed. Ask the support why.",
  TOO_MANY_REQUESTS: "Many logins have begun from where you are. Wait a minute, then try again.",
};

export function withErrorPage(handler: Handler): Handler {
  return async (context, next) => {
    try {
      return await handler(context, next);
    } catch (error) {
      if (!(error instanceof ApiError) || !wantsPage(context.req.raw.headers)) throw error;
      const { code, status, headers } = error;
      for (const [name, value] of Object.entries(headers)) context.header(name, value);
      const title = titles[code] ?? "You can't log in at the moment";
      return pageAnswer(context, <ErrorPage title={title} code={code} />, status);
    }
  };
}

function ErrorPage({ title, code }: { title: string; code: string }) {
  return (
    <Page
      title={`${title} · Kenri`}
      head={head}
      bar={
        <header class="bar">
          <Brand />
        </header>
      }
    >
      <main id="main" class="door">
        <h1>{title}</h1>
        <p>{sentences[code] ?? "Something that a login needs is not available. Try again soon."}</p>
        <p>
          <a class="button" href="/login?return_to=/">Log in</a>
        </p>
        <p class="muted">
          <code>{code}</code>
        </p>
      </main>
    </Page>
  );
}
