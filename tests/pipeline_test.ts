import assert from "node:assert/strict";
import { grant, revoke, someFields } from "./api.ts";
import { freshDatabase } from "./databases.ts";
import { ask, startEntitlement } from "./entitlement.ts";
import { startService } from "./services.ts";
import { natsUrl } from "./streams.ts";
import { until } from "./wait.ts";

Deno.test("a change over HTTP becomes exactly one notification that is sent", async () => {
  await using entitlement = await startEntitlement();
  await using database = await freshDatabase("notification");
  await using notification = await startService("notification", {
    NOTIFICATION_DATABASE_URL: database.serviceUrl,
    NOTIFICATION_NATS_STREAM: entitlement.stream,
    NOTIFICATION_NATS_SUBJECT: entitlement.subject,
    NOTIFICATION_NATS_DURABLE: "notifications",
    NOTIFICATION_DEBUG_ENABLED: "true",
    NATS_URL: natsUrl,
  });
  const fields = someFields;
  await grant(entitlement.url, fields, "k1");
  await revoke(entitlement.url, fields, "k2");
  await until("both are sent", async () => {
    const [row] = await ask<{ sent: number }>(
      database.ownerUrl,
      "select count(*)::int as sent from notifications where status = 'SENT'",
    );
    return row?.sent === 2;
  });
  const inbox =
    await (await fetch(`${notification.url}/debug/notification/inbox/${fields.user_id}`))
      .json();
  console.log(JSON.stringify(inbox, null, 1));
  assert.equal(inbox.notifications.length, 2);
  console.log(notification.log);
  assert.equal(await notification.stop(), 0);
});
