import { ApiError } from "../http/errors.ts";

// While no credential is asked for, everybody who reaches the loopback is answered. A page of another
// site that is open in a browser on this machine can reach it too, once that site's name leads here
// (DNS rebinding): to the browser the service is then the site itself. A name without a dot is no
// safer, because a browser completes it with a domain of the network. So only requests to names and
// addresses of the loopback are answered, which nobody can redirect. With credentials a service may
// have any name, for example that of a container, because such a page has no credential.

export function requireLoopbackName(url: string): void {
  const [, host = ""] = /^\w+:\/\/(\[[^\]]*\]|[^/:?#]*)/.exec(url) ?? [];
  if (isOwn.test(host)) return;
  throw new ApiError(
    "FORBIDDEN",
    "while everybody may call, this service answers only as localhost or by a loopback address",
  );
}

const isOwn = /^(127(\.\d{1,3}){3}|\[::1\]|([a-z0-9-]+\.)*localhost\.?)$/i;
