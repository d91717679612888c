// Stands in for redis-cli, which is not part of the Redis of the tests: sends the same command to the
// server, and prints what it answers. Takes `-u URL`, and then the command.
import { redisCommand, type Reply } from "../../tools/servers/redis_client.ts";

const [, url = "", ...command] = Deno.args;
console.log(linesOf(await redisCommand(url, ...command)).join("\n"));

function linesOf(reply: Reply): string[] {
  return Array.isArray(reply) ? reply.flatMap(linesOf) : [`${reply}`];
}
