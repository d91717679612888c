import { wantsPage } from "@kenri/shared/access/admit.ts";
import { toApiError } from "@kenri/shared/http/error_answers.ts";
import type { ApiError } from "@kenri/shared/http/errors.ts";
import { Page, pageAnswer, rendered } from "@kenri/shared/http/pages/page.tsx";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Handler } from "hono";

// A person gets a page where a program gets JSON.

export function withPages(handler: Handler, log: Log): Handler {
  return async (context, next) => {
    try {
      return await handler(context, next);
    } catch (error) {
      if (!wantsPage(context.req.raw.headers)) throw error;
      return refusalPage(toApiError(error, context, log));
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

function refusalPage(error: ApiError): Response {
  const { title, text, link } = words[error.code] ?? later;
  const page = pageAnswer(rendered(
    <Page title={title}>
      <main id="main">
        <h1>{title}</h1>
        <p>{text}</p>
        <p>
          <a href="/login">{link}</a>
        </p>
      </main>
    </Page>,
  ));
  for (const [name, value] of Object.entries(error.headers)) page.headers.set(name, value);
  return new Response(page.body, { status: error.status, headers: page.headers });
}
