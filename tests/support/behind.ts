// A gateway with an account service that can be made to misbehave, and receivers in place of the
// other services behind it.
import { type Behaviour, type Receiver, startReceiver } from "../../tools/receiver/receiver.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { type Account, startAccount } from "./account.ts";
import { type Answer, call } from "./api.ts";
import { csrf, type LoggedIn, logIn, startGateway } from "./gateway.ts";
import { startPassing } from "./passing.ts";

export interface Behind {
  gateway: ServiceProcess;
  real: Account;
  account: Receiver; // passes on to the real one, unless it is told otherwise
  entitlement: Receiver;
  notification: Receiver;
  matchmaking: Receiver;
  user: LoggedIn;
  csrf: Record<string, string>; // the headers of an unsafe request
  [Symbol.asyncDispose](): Promise<void>;
  /** As the user of the session. */
  ask(path: string, init?: RequestInit): Promise<Answer>;
}

export const json = (value: unknown, status = 200): Behaviour => ({
  status,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});

export async function startBehind(
  more: Settings = {},
  { isWithMatchmaking = true } = {},
): Promise<Behind> {
  await using started = new AsyncDisposableStack();
  const real = started.use(await startAccount());
  const account = started.use(await startPassing(real));
  const [entitlement, notification, matchmaking] = await Promise.all([
    startReceiver(),
    startReceiver(),
    startReceiver(),
  ]);
  for (const receiver of [entitlement, notification, matchmaking]) started.use(receiver);
  const user = await logIn(real);
  const gateway = await startGateway({ ...real, url: account.url }, {
    GATEWAY_ENTITLEMENT_URL: entitlement.url,
    GATEWAY_NOTIFICATION_URL: notification.url,
    ...(isWithMatchmaking ? { GATEWAY_MATCHMAKING_URL: matchmaking.url } : {}),
    ...more,
  });
  started.defer(() => gateway.kill().then(() => {}));
  const proof = await csrf(gateway, user);
  const parts = started.move();
  return {
    ...{ gateway, real, account, entitlement, notification, matchmaking, user, csrf: proof },
    ask: (path, init = {}) =>
      call(gateway.url + path, {
        ...init,
        headers: user.as({ ...init.headers as Record<string, string> }),
      }),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
