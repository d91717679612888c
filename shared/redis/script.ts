import { createHash } from "node:crypto";

// A Lua script, which Redis runs as one atomic step. Redis knows it by the hash of its text, so replicas
// of two releases can use the same server.
export interface Script {
  name: string;
  text: string;
  sha: string;
}

export function scriptOf(name: string, text: string): Script {
  return { name, text, sha: createHash("sha1").update(text).digest("hex") };
}
