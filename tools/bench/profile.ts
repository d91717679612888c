// How long a profile takes beyond the slowest of the three services behind it. They are in this process
// and answer after 20 ms; only what sessions need is asked of a real account service.
import { changeAtPace as atPace, percentiles } from "./latency.ts";
import { startGatewayStage } from "./gateway_stage.ts";
import type { Bench, Work } from "./work.ts";

const perSecond = 100;
const people = 100; // so that no two profiles of one person are on the way at the same time
const answersAfterMs = 20;

export async function startProfile({ servers, quick }: Bench): Promise<Work> {
  const profiles = perSecond * (quick ? 4 : 15);
  let behind: Behind | undefined;
  const stage = await startGatewayStage(servers, "profile", {
    people,
    behind: (accountUrl) => {
      behind = startBehind(accountUrl);
      return {
        GATEWAY_ACCOUNT_URL: behind.url,
        GATEWAY_ENTITLEMENT_URL: behind.url,
        GATEWAY_MATCHMAKING_URL: behind.url,
      };
    },
  });
  const slowestOf = behind?.slowestOf ?? new Map<string, number>();
  const [gateway] = stage.gateways;
  return {
    unit: "profiles/s",
    atMost: { "beyond the slowest p99 ms": 10 },
    measure: async () => {
      const [whole, beyond]: [number[], number[]] = [[], []];
      const seconds = await atPace({ changes: profiles, perSecond }, async (i) => {
        const { userId, cookie } = stage.people[i % people] ?? { userId: "", cookie: "" };
        slowestOf.delete(userId);
        const from = performance.now();
        const path = `/v1/users/${userId}/profile?ticket_id=${userId}`;
        const answer = await fetch(`${gateway?.url}${path}`, { headers: { Cookie: cookie } });
        const text = await answer.text();
        if (answer.status !== 200) throw new Error(`A profile failed: ${text}`);
        const tookMs = performance.now() - from;
        whole.push(tookMs);
        beyond.push(tookMs - (slowestOf.get(userId) ?? NaN));
      });
      const [all, more] = [percentiles(whole), percentiles(beyond)];
      return {
        perSecond: profiles / seconds,
        figures: {
          "p50 ms": all.p50,
          "p99 ms": all.p99,
          "beyond the slowest p50 ms": more.p50,
          "beyond the slowest p99 ms": more.p99,
        },
      };
    },
    limits: [],
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]();
      await behind?.stop();
    },
  };
}

interface Behind {
  url: string;
  slowestOf: Map<string, number>; // the time of the slowest answer for a user
  stop(): Promise<void>;
}

function startBehind(accountUrl: string): Behind {
  const slowestOf = new Map<string, number>();
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, async (request) => {
    const from = performance.now();
    const { pathname, search } = new URL(request.url);
    if (pathname.startsWith("/v1/sessions/")) return await fetch(accountUrl + pathname + search);
    const userId = request.headers.get("X-User-Id") ?? "";
    await new Promise((answer) => setTimeout(answer, answersAfterMs));
    const tookMs = performance.now() - from;
    slowestOf.set(userId, Math.max(tookMs, slowestOf.get(userId) ?? 0));
    return Response.json(answerTo(pathname, userId));
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    slowestOf,
    stop: () => server.shutdown(),
  };
}

function answerTo(path: string, user_id: string): object {
  if (path.endsWith("/entitlements")) {
    const right = { status: "ACTIVE", version: 1, updated_at: "2026-01-02T03:04:05.678901Z" };
    const entitlements = Array.from(
      { length: 20 },
      (_, i) => ({ stock_keeping_unit: `premium-${i}`, ...right }),
    );
    return { user_id, entitlements };
  }
  if (path.startsWith("/v1/matchmaking/")) {
    const expires_at = "2026-01-02T03:04:05Z";
    return { ticket_id: user_id, status: "QUEUED", expires_at, matched: null };
  }
  const account = { display_name: "Ann", locale: "en-GB", status: "ACTIVE", roles: ["USER"] };
  return { user_id, ...account, version: 1 };
}
