import { ApiError } from "./errors.ts";
import { refusedBy } from "./limits.ts";

// What is checked of every request before a route is looked for.

// The same size as for a body. The longest useful url lists dead letters by their error: a thousand
// percent-encoded characters.
const maxUrl = 16 * 1024;

export function refuseBadHead(request: Request): void {
  if (request.url.length > maxUrl) {
    throw refusedBy("url_size", new ApiError("URI_TOO_LONG", "the url is over 16 KiB"));
  }
  if (!isHostGood(request)) {
    throw new ApiError(
      "BAD_REQUEST",
      "a request needs a Host header with a name or an address, and a path that begins with /",
    );
  }
}

// The runtime builds the url from the Host and the path, so a Host that contains a path would
// choose another route. A health probe with HTTP/1.0 has no Host.
function isHostGood({ headers, url }: Request): boolean {
  const host = headers.get("Host");
  if (host === null) return healthUrl.test(url);
  return hostPattern.test(host) && url.startsWith(`${host}/`, url.indexOf("//") + 2);
}

const hostPattern = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(:\d{1,5})?$/;
const healthUrl = /^\w+:\/\/[^/]*\/(livez|readyz)$/;
