// A Redis with the users of deploy/redis.sh, and a url for each of them.
import { plantedPassword } from "../../tools/planted.ts";
import { type RedisOptions, type RedisServer, startRedis } from "../../tools/servers/redis.ts";

export type RedisUser = "matchmaking" | "operator";

const script = await Deno.readTextFile(new URL("../../deploy/redis.sh", import.meta.url));

/** What the script tells Redis of one of its users, each word by itself. */
export function rulesOf(user: RedisUser): string[] {
  const lines = script.replaceAll("\\\n", " ").split("\n");
  const line = lines.find((line) => line.startsWith(`user ${user} `)) ?? "";
  return line.replace(/\$\w+/, plantedPassword).trim().split(/ +/).slice(2);
}

/** The user "default" stays as well, because the test needs it. */
export function startGuardedRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const users = (["matchmaking", "operator"] as const)
    .map((user) => `user ${user} ${rulesOf(user).join(" ")}\n`);
  return startRedis({ ...options, settings: `${options.settings ?? ""}\n${users.join("")}` });
}

export function redisUrlFor(user: RedisUser, { port }: { port: number }): string {
  return `redis://${user}:${plantedPassword}@127.0.0.1:${port}`;
}
