import { admitAtRate } from "@kenri/shared/access/rate.ts";
import { customerOf } from "@kenri/shared/net/public_addresses.ts";
import type { RateLimits } from "./config.ts";

// How often one address may begin a login, and one user may send a request. Each replica counts
// separately.

export interface Rates {
  login(address: string): void; // throws when it is too often
  callback(address: string): void; // the end of a login
  user(userId: string): void;
}

export function ratesOf({ loginPerMinute, userPerSecond, userBurst }: RateLimits): Rates {
  const logins = () =>
    admitAtRate(
      { perSecond: loginPerMinute / 60, burst: loginPerMinute },
      "too many logins came from this address",
    );
  const [login, callback] = [logins(), logins()];
  return {
    login: (address) => login(customerOf(address)),
    callback: (address) => callback(customerOf(address)),
    user: admitAtRate(
      { perSecond: userPerSecond, burst: userBurst },
      "this user sent too many requests",
    ),
  };
}
