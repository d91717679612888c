import { apiError } from "../errors.ts";

const maxLength = 1_024; // it travels in the url of the issuer

// The path to which a browser returns after the login, so that a link to it works for people who are not
// logged in yet. It is only ever a path of ours: what could lead elsewhere is refused.
export function returnToOf(query: URLSearchParams, publicUrl: string): string {
  const [wanted = "/", ...others] = query.getAll("return_to");
  const path = others.length === 0 && wanted.length <= maxLength && isPlain(wanted)
    ? pathOf(wanted, publicUrl)
    : undefined;
  if (path === undefined) {
    throw apiError("BAD_REQUEST", "return_to must be a path of this site, such as /orders");
  }
  return path;
}

// Browsers drop some of these characters and take a backslash for a slash.
function isPlain(wanted: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^\/(?![/\\])[^\\\u0000-\u0020\u007f-\u009f]*$/u.test(wanted) && wanted.isWellFormed();
}

// The path is read in the way in which a browser reads it, without its dots: "/.//other.example" becomes
// "//other.example", which is another host.
function pathOf(wanted: string, publicUrl: string): string | undefined {
  const url = URL.parse(wanted, publicUrl);
  const path = url?.origin === publicUrl ? url.href.slice(publicUrl.length) : "//";
  return path.startsWith("//") ? undefined : path;
}
