// How soon two users know of their match at a steady pace: from the join of the second one to the answer
// that both wait for, and to the notification of both. One clock measures everything.
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { untilReady } from "../load/stage.ts";
import { startService } from "../servers/service_process.ts";
import { matchmakingSettings, settingsOf } from "./both.ts";
import { changeAtPace as atPace, percentiles } from "./latency.ts";
import type { Bench, Work } from "./work.ts";

const perSecond = 200;
const [stream, subject] = ["bench-matches", "bench.matches"];

interface Player {
  user: string;
  joinedAt: number; // when the join was sent
  matchId: string;
  toldAt: number; // when the answer of the match came
}

export async function startMatchLatency({ servers, quick }: Bench): Promise<Work> {
  const joins = perSecond * (quick ? 4 : 15);
  await using started = new AsyncDisposableStack();
  const database = await makeDatabase(servers.postgres, "notification", "bench_matches");
  const notification = await startService("notification", {
    ...settingsOf("notification", servers, database, "matches_of_others"),
    NOTIFICATION_MATCHMAKING_ENABLED: "true",
    NOTIFICATION_MATCHMAKING_STREAM: stream,
    NOTIFICATION_MATCHMAKING_SUBJECT: subject,
  });
  started.defer(() => notification.kill().then(() => {}));
  const matchmaking = await startService("matchmaking", matchmakingSettings(servers, "matches", 3));
  started.defer(() => matchmaking.kill().then(() => {}));
  await untilReady(matchmaking);
  const { url } = matchmaking;
  let round = 0;
  const measure = async () => {
    const players: Player[] = [];
    const name = `round-${round++}`;
    const seconds = await atPace({ changes: joins, perSecond }, async (i) => {
      players.push(await play(url, `${name}-${i}`));
    });
    const sentAt = await untilSent(database.ownerUrl, players);
    const couples = Map.groupBy(players, ({ matchId }) => matchId).values().toArray();
    const since = (couple: Player[]) => Math.max(...couple.map(({ joinedAt }) => joinedAt));
    const after = (at: (player: Player) => number) =>
      percentiles(couples.map((couple) => Math.max(...couple.map(at)) - since(couple)));
    const told = after(({ toldAt }) => toldAt);
    const sent = after(({ user }) => sentAt.get(user) ?? NaN);
    return {
      perSecond: joins / seconds,
      figures: {
        "both MATCHED p50 ms": told.p50,
        "both MATCHED p99 ms": told.p99,
        "both notified p50 ms": sent.p50,
        "both notified p99 ms": sent.p99,
      },
    };
  };
  const parts = started.move();
  return {
    unit: "joins/s",
    atMost: { "both MATCHED p99 ms": 15, "both notified p99 ms": 40 },
    measure,
    limits: [],
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function play(url: string, user: string): Promise<Player> {
  const headers = { "Content-Type": "application/json", "X-User-Id": user };
  const joinedAt = now();
  const body = JSON.stringify({ party_size: 1, idempotency_key: user });
  const tickets = `${url}/v1/matchmaking`;
  const answer = await fetch(`${tickets}/queues/casual/tickets`, { method: "POST", headers, body });
  const { ticket_id } = await answer.json();
  const found = await fetch(`${tickets}/tickets/${ticket_id}?wait=30s`, { headers });
  const { status, matched } = await found.json();
  if (status !== "MATCHED") throw new Error(`The ticket of ${user} is ${status}`);
  return { user, joinedAt, matchId: matched.match_id, toldAt: now() };
}

const now = () => performance.timeOrigin + performance.now();

/** When each was notified, by the clock of the database on the same machine. */
async function untilSent(ownerUrl: string, players: Player[]): Promise<Map<string, number>> {
  return await withClient(ownerUrl, async (owner) => {
    for (;;) {
      const { rows } = await owner.query<{ user_id: string; sent: number }>(
        `select user_id, extract(epoch from sent_at)::float8 * 1000 as sent
         from notifications
         where status = 'SENT' and type = 'MatchFound' and user_id = any($1)`,
        [players.map(({ user }) => user)],
      );
      if (rows.length === players.length) {
        return new Map(rows.map(({ user_id, sent }) => [user_id, sent]));
      }
      await new Promise((again) => setTimeout(again, 20));
    }
  });
}
