// Databases and a stream that no other test uses, for one service or for both.
import { type BothPlaces, bothPlaces, type Place } from "../../tools/load/stage.ts";
import { plantedPassword } from "../../tools/planted.ts";
import type { ServiceName } from "../../tools/services.ts";
import { dropDatabase, dropRole, freshDatabase, uniqueName, urlOf } from "./databases.ts";
import { freshStreamNames, natsUrl } from "./streams.ts";

export interface FreshPlace extends Place, AsyncDisposable {}

export async function freshPlaceOf(
  service: ServiceName,
  more: Partial<Place> = {},
): Promise<FreshPlace> {
  const { ownerUrl, serviceUrl, drop } = await freshDatabase(service);
  return {
    ...{ ...freshStreamNames(), natsUrl, ownerUrl, serviceUrl, ...more },
    [Symbol.asyncDispose]: drop,
  };
}

export interface FreshPlaces extends BothPlaces, AsyncDisposable {}

export async function freshBoth(onNats: string = natsUrl): Promise<FreshPlaces> {
  const [entitlement, notification] = await Promise.all([
    freshDatabase("entitlement"),
    freshDatabase("notification"),
  ]);
  const places = bothPlaces(
    { ...freshStreamNames(), natsUrl: onNats, entitlement, notification },
    { NOTIFICATION_DELIVERY_POLL_INTERVAL: "100ms" },
  );
  return {
    ...places,
    [Symbol.asyncDispose]: async () => {
      await entitlement.drop();
      await notification.drop();
    },
  };
}

/** Names of databases and roles that don't exist yet: a migration makes them. */
export function bothUnmigrated(): FreshPlaces {
  const [entitlement, notification] = [uniqueName("entitlement"), uniqueName("notification")];
  const urlsOf = (name: string) => ({
    ownerUrl: urlOf({ database: name }),
    serviceUrl: urlOf({ database: name, user: name, password: plantedPassword }),
  });
  const parts = {
    ...{ ...freshStreamNames(), natsUrl },
    ...{ entitlement: urlsOf(entitlement), notification: urlsOf(notification) },
  };
  return {
    ...bothPlaces(parts, {
      NOTIFICATION_DELIVERY_POLL_INTERVAL: "100ms",
      ENTITLEMENT_MIGRATION_DATABASE_URL: parts.entitlement.ownerUrl,
      NOTIFICATION_MIGRATION_DATABASE_URL: parts.notification.ownerUrl,
    }),
    [Symbol.asyncDispose]: async () => {
      for (const name of [entitlement, notification]) {
        await dropDatabase(name);
        await dropRole(name);
      }
    },
  };
}
