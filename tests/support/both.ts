// Both services on databases and a stream of their own: from the change to its notification.
import { plantedPassword } from "../../tools/planted.ts";
import { dropDatabase, dropRole, freshDatabase, uniqueName, urlOf } from "./databases.ts";
import { settingsOf as entitlementSettings } from "./entitlement.ts";
import type { OwnerUrls } from "../../tools/chaos/invariants/invariants.ts";
import { settingsOf as notificationSettings } from "./notification.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
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
  return {
    ...placeOf(entitlement, notification, onNats),
    [Symbol.asyncDispose]: async () => {
      await entitlement.drop();
      await notification.drop();
    },
  };
}

/** Names of databases and roles that are not there yet: a migration makes them. */
export function bothUnmigrated(): BothPlace {
  const [entitlement, notification] = [uniqueName("entitlement"), uniqueName("notification")];
  const urlsOf = (name: string) => ({
    ownerUrl: urlOf({ database: name }),
    serviceUrl: urlOf({ database: name, user: name, password: plantedPassword }),
  });
  const place = placeOf(urlsOf(entitlement), urlsOf(notification), natsUrl);
  return {
    ...place,
    settings: {
      ...place.settings,
      ENTITLEMENT_MIGRATION_DATABASE_URL: place.owners.entitlement,
      NOTIFICATION_MIGRATION_DATABASE_URL: place.owners.notification,
    },
    [Symbol.asyncDispose]: async () => {
      for (const name of [entitlement, notification]) {
        await dropDatabase(name);
        await dropRole(name);
      }
    },
  };
}

interface Urls {
  ownerUrl: string;
  serviceUrl: string;
}

function placeOf(
  entitlement: Urls,
  notification: Urls,
  natsUrl: string,
): Omit<BothPlace, typeof Symbol.asyncDispose> {
  const names = freshStreamNames();
  return {
    ...names,
    natsUrl,
    owners: { entitlement: entitlement.ownerUrl, notification: notification.ownerUrl },
    settings: {
      ...entitlementSettings(entitlement.serviceUrl, names),
      ...notificationSettings({ ...names, ...notification, natsUrl }),
    },
  };
}
