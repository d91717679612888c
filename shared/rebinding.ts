import { ApiError } from "./errors.ts";

// As long as no credential is asked for, whoever reaches the loopback is answered. A page of another
// site, open in a browser on this machine, can reach it too, once its own name leads here (DNS
// rebinding); to the browser the service is then that site itself. Such a name has a dot, and what
// this machine calls itself has none.

export function refuseStrangeName(url: string): void {
  const [, host = ""] = /^\w+:\/\/(\[[^\]]*\]|[^/:?#]*)/.exec(url) ?? [];
  if (!host.includes(".") || isOwn.test(host)) return;
  throw new ApiError(
    "FORBIDDEN",
    "as long as everybody may call, this service is asked for by an address or as localhost",
  );
}

const isOwn = /^(\d{1,3}(\.\d{1,3}){3}|\[.*\]|(.*\.)?localhost\.?)$/i;
