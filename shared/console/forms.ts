import type { Context } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { Buffer } from "node:buffer";
import { ApiError } from "../http/errors.ts";
import { readFields } from "../http/body.ts";

// A form that changes something is accepted only from a page of this console. The browser's headers
// must not contradict that, and the form must carry the same random token as a cookie. The service
// stores nothing, so any replica can accept the form.

const cookieName = "kenri_form";
const tokenPattern = /^[0-9a-f]{32}$/;
const cookie = { path: "/console", httpOnly: true, sameSite: "Strict" } as const;

export function formToken(context: Context): string {
  const known = getCookie(context, cookieName);
  if (known && tokenPattern.test(known)) return known;
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  setCookie(context, cookieName, token, cookie);
  return token;
}

export async function readForm(context: Context): Promise<URLSearchParams> {
  const { req } = context;
  if (!isOwnPage(req.header("Sec-Fetch-Site"), req.header("Origin"), req.url)) {
    throw new ApiError("FORBIDDEN", "this form was not sent from a page of this console");
  }
  const fields = await readFields(req.raw);
  const token = getCookie(context, cookieName);
  if (!token || !tokenPattern.test(token) || fields.get("token") !== token) {
    throw new ApiError("FORBIDDEN", "this form has expired, reload its page");
  }
  return fields;
}

// If a browser sends neither header, the token alone decides.
function isOwnPage(site: string | undefined, origin: string | undefined, url: string): boolean {
  if (site !== undefined) return site === "same-origin";
  if (origin === undefined) return true;
  const host = URL.parse(url)?.host;
  return host !== undefined && URL.parse(origin)?.host === host;
}

// A message about the result of a form, which the next page shows once.
const noteName = "kenri_note";
const maxNote = 1_500; // characters; a browser keeps a cookie of 4 kB, and base64 makes it longer

export function leaveNote(context: Context, note: string): void {
  const written = Buffer.from(note.slice(0, maxNote)).toString("base64url");
  setCookie(context, noteName, written, { ...cookie, maxAge: 60 });
}

export function takeNote(context: Context): string | undefined {
  const written = getCookie(context, noteName);
  if (!written) return undefined;
  setCookie(context, noteName, "", { ...cookie, maxAge: 0 });
  return Buffer.from(written, "base64url").toString();
}
