// Both services on databases and a stream of their own: from the change to its notification.
import { freshDatabase } from "./databases.ts";
import { settingsOf as entitlementSettings } from "./entitlement.ts";
import type { OwnerUrls } from "./invariants.ts";
import { settingsOf as notificationSettings } from "./notification.ts";
import type { Settings } from "./services.ts";
import { freshStreamNames, natsUrl, type StreamNames } from "./streams.ts";

export interface BothPlace extends StreamNames, AsyncDisposable {
  natsUrl: string;
  owners: OwnerUrls;
  settings: Settings; // of both services
}

export async function freshBoth(onNats: string = natsUrl): Promise<BothPlace> {
  const [entitlement, notification] = await Promise.all([
    freshDatabase("entitlement"),
    freshDatabase("notification"),
  ]);
  const names = freshStreamNames();
  const { ownerUrl, serviceUrl } = notification;
  return {
    ...names,
    natsUrl: onNats,
    owners: { entitlement: entitlement.ownerUrl, notification: ownerUrl },
    settings: {
      ...entitlementSettings(entitlement.serviceUrl, names),
      ...notificationSettings({ ...names, ownerUrl, serviceUrl, natsUrl: onNats }),
    },
    [Symbol.asyncDispose]: async () => {
      await entitlement.drop();
      await notification.drop();
    },
  };
}
