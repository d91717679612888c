// Changes over HTTP while a flood of due reservations drains: what the flood leaves to other callers. The
// relay is off on both sides.
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { type ServiceProcess, startService } from "../servers/service_process.ts";
import { runLoad } from "../load/sockets.ts";
import { countOf, hasRow } from "./database.ts";
import { forgetPoints, isDue, reserve } from "./reservations.ts";
import { settingsOf } from "./both.ts";
import type { StartWork } from "./work.ts";

/** With `users`, all that is due is of so few balances. */
export function besideDueOf(name: string, users?: number): StartWork {
  return async ({ servers, quick }) => {
    const changes = quick ? 5_000 : 30_000;
    const flood = quick ? 100_000 : 1_000_000;
    const start = async (database: string) => {
      const urls = await makeDatabase(servers.postgres, "entitlement", `bench_${database}`);
      const service = await startService("entitlement", {
        ...settingsOf("entitlement", servers, urls, name),
        ENTITLEMENT_OUTBOX_ENABLED: "false",
        ENTITLEMENT_RETENTION_ENABLED: "false",
      });
      return { ownerUrl: urls.ownerUrl, service, made: 0 };
    };
    const busy = await start(name);
    const calm = await start(`${name}_calm`);
    const load = async (one: { service: ServiceProcess; made: number }) => {
      const options = { first: one.made, count: changes };
      const { seconds, latenciesMs } = await runLoad(one.service.url, "change", options);
      one.made += changes;
      return { perSecond: changes / seconds, p99: latenciesMs.p99 };
    };
    const whileDraining = () =>
      withClient(busy.ownerUrl, async (owner) => {
        await forgetPoints(owner);
        await reserve(owner, { reservations: flood, users: users ?? flood });
        while (!await hasRow(owner, "point_transactions")) {
          await new Promise((again) => setTimeout(again, 50));
        }
        const before = await countOf(owner, isDue);
        const from = performance.now();
        const { perSecond, p99 } = await load(busy);
        const seconds = (performance.now() - from) / 1_000;
        const left = await countOf(owner, isDue);
        if (left === 0) throw new Error("The flood was over before the changes");
        // The worker loses what it has in hand, and the other service is measured without a flood.
        await owner.query("truncate point_reservations, reservation_attempts");
        const granted = (before - left) / seconds;
        return { perSecond, figures: { "p99 ms": p99, "granted meanwhile /s": granted } };
      });
    return {
      unit: "changes/s",
      atMost: {},
      measure: whileDraining,
      limits: [{
        name: "the same without the flood",
        what: "by a service of its own",
        target: 0.5,
        measure: async () => (await load(calm)).perSecond,
      }],
      [Symbol.asyncDispose]: async () => {
        await Promise.all([busy.service.stop(), calm.service.stop()]);
      },
    };
  };
}
