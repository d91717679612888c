// The pages of the issuer. None of their texts comes from a request.
import { demoNames, namePattern } from "./users.ts";

export function loginPage(action: string): string {
  const buttons = demoNames.map((name) => `<button name="user" value="${name}">${name}</button>`);
  return pageOf(
    "Log in",
    `<p>This issuer is for development and tests: it asks for no password.</p>
<form method="post" action="${action}"><p>${buttons.join(" ")}</p></form>
<form method="post" action="${action}"><p><label>Another user
<input name="user" required pattern="${namePattern}" autocapitalize="off" autocomplete="off"></label>
<button>Log in</button></p></form>`,
  );
}

export const startPage = (): string =>
  pageOf(
    "The issuer of the demo users",
    `<p><a href="/session/end">Log out here</a> to end your sessions in all applications.</p>`,
  );

export const endPage = (): string =>
  pageOf("Logged out", "<p>Your sessions in all applications have ended.</p>");

export const errorPage = (): string =>
  pageOf("That did not work", "<p>Go back to the application and log in again.</p>");

/** `form` is the provider's own form, whose id is op.logoutForm. */
export const logoutPage = (form: string): string =>
  pageOf(
    "Log out",
    `${form}<p><button form="op.logoutForm" name="logout" value="yes">Log out</button></p>`,
  );

function pageOf(title: string, content: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
button, input { font: inherit; padding: .4rem 1rem }
</style></head>
<body><main><h1>${title}</h1>
${content}
</main></body></html>`;
}
