import assert from "node:assert/strict";
import { StartRefused } from "../process/start_refused.ts";
import { checkDurability } from "./durability.ts";

interface Server {
  version: string;
  aof?: boolean;
  policy?: string; // absent: the user may not ask
}

async function warningsOf({ version, aof = true, policy }: Server, by?: string): Promise<string[]> {
  const lines: string[] = [];
  const ask = (args: string[]) => {
    switch (args.join(" ")) {
      case "INFO server":
        return Promise.resolve(`# Server\r\nredis_version:${version}\r\n`);
      case "INFO persistence":
        return Promise.resolve(`# Persistence\r\naof_enabled:${Number(aof)}\r\n`);
      default:
        return policy === undefined
          ? Promise.reject(new Error("NOPERM"))
          : Promise.resolve({ appendfsync: policy });
    }
  };
  await checkDurability(ask, by, (line) => void lines.push(line));
  return lines;
}

const aof = "everysec";

Deno.test("what a server may lose is said in one line", async () => {
  const version = "7.0.15";
  assert.deepEqual(await warningsOf({ version, policy: "always" }), []);
  for (
    const [server, line] of [
      [{ version, aof: false }, /has no append-only file, so all its data is lost/],
      [{ version, policy: aof }, /once a second, so it can lose the last second/],
      [{ version, policy: "no" }, /leaves it to the system.*half a minute/],
      [{ version }, /can lose the last second/],
    ] as const
  ) {
    const lines = await warningsOf(server);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", line);
  }
});

Deno.test("confirmations are refused where the server can't give them, and nothing is warned of where it can", async () => {
  const refused: [Server, RegExp][] = [
    [{ version: "7.0.15", policy: aof }, /^X needs Redis 7\.2 or newer, and this is 7\.0\.15$/],
    [{ version: "6.2.14", policy: aof }, /and this is 6\.2\.14$/],
    [{ version: "", policy: aof }, /of unknown version$/],
    [{ version: "7.2.4", aof: false }, /^X needs appendonly to be yes in Redis$/],
    [{ version: "7.2.4", policy: "no" }, /^X needs appendfsync to be always or everysec in Redis$/],
  ];
  for (const [server, message] of refused) {
    await assert.rejects(warningsOf(server, "X"), (error) => {
      assert.ok(error instanceof StartRefused);
      assert.match(error.message, message);
      return true;
    });
  }
  for (const version of ["7.2.4", "7.4.0", "8.0.2", "10.0.0"]) {
    for (const policy of [aof, "always"]) {
      assert.deepEqual(await warningsOf({ version, policy }, "X"), [], version);
    }
  }
});
