import { type DebianPackage, fromDebian } from "./debian_package.ts";
import { findProgram, type Program, type Say } from "./find_program.ts";

/** Debian 13 has 8.0, Debian 12 only 7.0. */
export const redisPackage: DebianPackage = {
  name: "redis-server",
  program: "usr/bin/redis-server",
  newer: true,
  withLibraries: true,
};

const redisServer: Program = {
  name: "redis-server",
  otherNames: ["valkey-server"],
  setting: "KENRI_REDIS_SERVER",
  version: /(?:Redis|Valkey) server v=((?:[7-9]|\d\d)\.[\w.-]+)/,
  sources: [{
    name: "Debian's package",
    fetchInto: (folder, say) => fromDebian(redisPackage, folder, say),
  }],
  advice: "Install Redis 7.0 or newer, or Valkey (Debian: apt-get install redis-server, macOS: " +
    "brew install redis, else https://redis.io/docs/latest/operate/oss_and_stack/install/)",
};

export function findRedisServer(say: Say = () => {}): Promise<string> {
  return findProgram(redisServer, say);
}
