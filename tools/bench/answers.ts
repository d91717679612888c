// Requests that only read: the replay of a stored answer, and the list of a user's entitlements. The
// limit of both is a handler that returns a constant answer of the same length.
import { fileURLToPath } from "node:url";
import { startService } from "../servers/service_process.ts";
import { freePort } from "../servers/free_port.ts";
import { makeDatabase } from "../servers/databases.ts";
import { type LoadKind, runLoad } from "../load/sockets.ts";
import type { Bench, Work } from "./work.ts";
import { settingsOf } from "./both.ts";
import { expectRows } from "./database.ts";

const users = 500;
const entitlementsEach = 20;

export function startReplay(bench: Bench): Promise<Work> {
  return startAnswers(bench, "replay", 150);
}

export function startList(bench: Bench): Promise<Work> {
  return startAnswers(bench, "list", 2_400);
}

async function startAnswers(
  { servers, quick }: Bench,
  kind: LoadKind,
  answerBytes: number,
): Promise<Work> {
  const requests = quick ? 10_000 : 50_000;
  const database = await makeDatabase(servers.postgres, "entitlement", `bench_${kind}`);
  const service = await startService("entitlement", {
    ...settingsOf("entitlement", servers, database, kind),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
  });
  const constant = await startConstant(answerBytes);
  const load = { first: 0, count: users * entitlementsEach, users };
  await runLoad(service.url, "change", load);
  const measure = async (url: string) => {
    const { seconds } = await runLoad(url, kind, { ...load, count: requests });
    return requests / seconds;
  };
  return {
    unit: "answers/s",
    atMost: {},
    measure: async () => {
      const perSecond = await measure(service.url);
      await expectRows(database, load.count, "outbox_events");
      return { perSecond, figures: {} };
    },
    limits: [{
      name: "a constant answer",
      what: "by Hono, of the same length",
      target: 0.3,
      measure: () => measure(constant.url),
    }],
    [Symbol.asyncDispose]: async () => {
      constant.stop();
      await service.stop();
    },
  };
}

export async function startConstant(
  bytes: number,
): Promise<{ url: string; stop(): void }> {
  const port = freePort();
  const program = fileURLToPath(new URL("constant.ts", import.meta.url));
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", `--allow-net=127.0.0.1:${port}`, program, `${port}`, `${bytes}`],
    stdout: "null",
    stderr: "null",
  }).spawn();
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer) return { url, stop: () => child.kill() };
    await new Promise((again) => setTimeout(again, 20));
  }
}
