import { ApiError } from "../http/errors.ts";

// While no credential is needed, every request that arrives on the loopback interface is answered.
// Such a request may come from a page of another site in a browser on this machine, if the name of
// that site resolves to a loopback address (DNS rebinding): the browser then takes the service for
// the site. A name without a dot is no safer, because a resolver may complete it with a domain of
// the network. So only requests to loopback names and addresses are answered, which nobody else
// controls. When credentials are needed, a service may have any name, such as that of a container,
// because the page has no credential.

export function requireLoopbackName(url: string): void {
  const [, host = ""] = /^\w+:\/\/(\[[^\]]*\]|[^/:?#]*)/.exec(url) ?? [];
  if (isLoopbackName.test(host)) return;
  throw new ApiError(
    "FORBIDDEN",
    "while no credentials are configured, this service answers only as localhost or a loopback address",
  );
}

const isLoopbackName = /^(127(\.\d{1,3}){3}|\[::1\]|([a-z0-9-]+\.)*localhost\.?)$/i;
