import type { Context } from "hono";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import type { ShowPage } from "@kenri/shared/console/ask.ts";
import { formToken, readForm } from "@kenri/shared/console/forms.ts";
import { ConsolePage, type Site } from "@kenri/shared/console/layout.tsx";
import { SearchField } from "@kenri/shared/console/search.tsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { findAccounts, FoundAccounts } from "./accounts_page.tsx";
import type { AccountLook } from "./find_accounts.ts";
import { accountsPath, findPath } from "./links.tsx";

// Finds accounts by email or by identity. It is a form that is posted, so that neither is ever in a
// url, and the answer shows no email.

export function findPage(site: Site): ShowPage {
  return (context) => answer(context, site, undefined);
}

export function findNow(site: Site): ShowPage {
  return async (context, api) => {
    const form = await readForm(context);
    const of = (name: string) => form.get(name) || undefined;
    const query = { email: of("email"), provider: of("provider"), subject: of("subject") };
    return answer(context, site, await findAccounts(api, query));
  };
}

function answer(context: Context, site: Site, found: AccountLook[] | undefined): Response {
  const token = formToken(context);
  return pageAnswer(
    context,
    <ConsolePage site={site} path={accountsPath} title="Find accounts">
      <SearchForm token={token}>
        <SearchField id="email" label="Email" value="" maxlength={255} />
      </SearchForm>
      <SearchForm token={token}>
        <SearchField id="provider" label="Provider" value="" maxlength={255} />
        <SearchField id="subject" label="Subject" value="" maxlength={255} />
      </SearchForm>
      {found && <FoundAccounts site={site} found={found} />}
      <p>
        <a href={accountsPath}>Find by user id</a>
      </p>
    </ConsolePage>,
  );
}

function SearchForm(
  { token, children }: { token: string; children: JSX.Element | JSX.Element[] },
): JSX.Element {
  return (
    <form class="search" method="post" action={findPath} role="search">
      <input type="hidden" name="token" value={token} />
      {children}
      <button type="submit">Find</button>
    </form>
  );
}
