// People with a browser that runs no scripts, at the console.

export interface Visit {
  status: number;
  html: string;
  location: string | null;
}

export interface Browser {
  cookies: Map<string, string>;
  rules: Map<string, string>; // of each cookie, as they were said
  visit(path: string, form?: Record<string, string>, more?: Record<string, string>): Promise<Visit>;
}

export function browserOf(url: string): Browser {
  const cookies = new Map<string, string>();
  const rules = new Map<string, string>();
  return {
    cookies,
    rules,
    visit: async (path, form, more = {}) => {
      const answer = await fetch(url + path, {
        method: form ? "POST" : "GET",
        headers: {
          Accept: "text/html",
          "Sec-Fetch-Mode": "navigate",
          "Sec-Fetch-Site": "same-origin",
          Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
          ...more,
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
