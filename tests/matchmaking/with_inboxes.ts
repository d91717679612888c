// Matchmaking and the notification service that reads its events, so that users have an inbox.
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { type Matchmaking, startMatchmaking } from "../support/matchmaking.ts";
import { matchmakingPlace, startWithMatchmaking } from "../support/matchmaking_events.ts";
import {
  freshPlace,
  type NotificationRow,
  notificationsOf,
  untilSent,
} from "../support/notification.ts";

export interface WithInboxes extends Matchmaking {
  notification: ServiceProcess;
  /** All notifications, when at least so many are sent. */
  sent(count: number): Promise<NotificationRow[]>;
}

export async function startWithInboxes(more: Settings = {}): Promise<WithInboxes> {
  await using started = new AsyncDisposableStack();
  const place = started.use(await freshPlace());
  const matchmaking = started.use(await startMatchmaking(more, matchmakingPlace(place)));
  const notification = started.use(await startWithMatchmaking(place));
  const parts = started.move();
  return {
    ...matchmaking,
    notification,
    sent: async (count) => {
      await untilSent(place, count);
      return await notificationsOf(place);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
