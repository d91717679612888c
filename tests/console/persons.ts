// A browser without scripts, as far as the console needs one: it keeps cookies and sends forms.

import { keep } from "../../tools/servers/evidence.ts";

export interface Visit {
  status: number;
  html: string;
  location: string | null;
}

export interface Browser {
  cookies: Map<string, string>;
  rules: Map<string, string>; // the attributes with which each cookie was set
  visit(
    path: string,
    form?: Record<string, string> | [string, string][],
    headers?: Record<string, string>,
  ): Promise<Visit>;
}

export function browserOf(url: string): Browser {
  const cookies = new Map<string, string>();
  const rules = new Map<string, string>();
  return {
    cookies,
    rules,
    visit: async (path, form, headers = {}) => {
      const answer = await fetch(url + path, {
        method: form ? "POST" : "GET",
        headers: {
          Accept: "text/html",
          "Sec-Fetch-Mode": "navigate",
          "Sec-Fetch-Site": "same-origin",
          Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
          ...headers,
        },
        ...(form ? { body: new URLSearchParams(form) } : {}),
        redirect: "manual",
      });
      for (const line of answer.headers.getSetCookie()) {
        const [, name = "", value = "", rule = ""] = /^([^=]+)=([^;]*);? ?(.*)$/.exec(line) ?? [];
        rules.set(name, rule);
        if (/Max-Age=0/.test(rule)) cookies.delete(name);
        else cookies.set(name, value);
      }
      const html = await answer.text();
      keep("pages", html);
      return { status: answer.status, html, location: answer.headers.get("Location") };
    },
  };
}

export const formTokenIn = (html: string): string =>
  /name="token" value="([0-9a-f]{32})"/.exec(html)?.[1] ?? "";

export async function signIn(browser: Browser, credential: string): Promise<Visit> {
  const { html } = await browser.visit("/console/sign-in");
  return await browser.visit("/console/sign-in", { token: formTokenIn(html), credential });
}
