import { wantsPage } from "@kenri/shared/access/admit.ts";
import { toApiError } from "@kenri/shared/http/error_answers.ts";
import type { ApiError } from "@kenri/shared/http/errors.ts";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { Page } from "@kenri/shared/http/pages/page.tsx";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Context, Handler } from "hono";
import { bar, head } from "../page/frame.tsx";

// A person gets a page where a program gets JSON.

export function withPages(handler: Handler, log: Log): Handler {
  return async (context, next) => {
    try {
      return await handler(context, next);
    } catch (error) {
      if (!wantsPage(context.req.raw.headers)) throw error;
      return refusalPage(context, toApiError(error, context, log));
    }
  };
}

interface Words {
  title: string;
  text: string;
  link: string;
}

const later = {
  title: "Logging in does not work right now",
  text: "Please try again in a moment.",
  link: "Try again",
};

const words: Record<string, Words> = {
  LOGIN_FAILED: {
    title: "You are not logged in",
    text: "The login took too long, was cancelled, or could not be verified. Please try again.",
    link: "Log in again",
  },
  ACCOUNT_INACTIVE: {
    title: "Your account is suspended",
    text: "You can't log in with it. If you think that this is a mistake, please contact us.",
    link: "Log in with another account",
  },
  BAD_REQUEST: {
    title: "This link does not work",
    text: "It leads to another place than this site.",
    link: "Log in",
  },
  TOO_MANY_REQUESTS: {
    title: "That was too often",
    text: "Too many logins came from your network. Please wait a minute.",
    link: "Try again",
  },
};

function refusalPage(context: Context, { code, status, headers }: ApiError): Response {
  const { title, text, link } = words[code] ?? later;
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
  return pageAnswer(
    context,
    <Page title={`${title} · Kenri`} head={head} bar={bar()}>
      <main id="main" class="door">
        <h1>{title}</h1>
        <p>{text}</p>
        <p>
          <a class="button" href="/login">{link}</a>
        </p>
      </main>
    </Page>,
    status,
  );
}
