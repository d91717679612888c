// POSTs as the sender makes them, each over a connection of its own, but without order, ledger and
// token. In a process of its own, as the sender is. Arguments: the posts as JSON. Prints the seconds.
import { fileURLToPath } from "node:url";
import { readRange } from "../../shared/net/public_addresses.ts";
import { resolve } from "../../sender/resolve.ts";
import { send, type SendOptions } from "../../sender/send.ts";
import { v8Flags } from "../services.ts";
import { shared, timed } from "./work.ts";

interface Posts {
  url: string;
  body: string;
  count: number;
  atOnce: number;
}

/** Returns the rate per second. */
export async function barePosts(posts: Posts): Promise<number> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--cached-only", v8Flags, `--allow-net=${new URL(posts.url).host}`],
      ...[fileURLToPath(import.meta.url), JSON.stringify(posts)],
    ],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("The bare POSTs failed; the error is above");
  return Number(new TextDecoder().decode(stdout));
}

const thisMachine = [readRange("127.0.0.1")].filter((range) => range !== undefined);

async function post({ url, body }: Posts, options: SendOptions): Promise<void> {
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": "Kenri",
    "Idempotency-Key": crypto.randomUUID(),
  };
  const answer = await send({ method: "POST", url, headers, body, timeout_ms: 2_500 }, options);
  if (!("status" in answer) || answer.status !== 200) throw new Error(JSON.stringify(answer));
}

if (import.meta.main) {
  const posts: Posts = JSON.parse(Deno.args[0] ?? "");
  const { count, atOnce } = posts;
  const options: SendOptions = {
    rules: { plainHttp: true, ports: [], allowed: thisMachine },
    own: { hostname: "127.0.0.1", port: 0 },
    resolve,
  };
  console.log(await timed(count, () => shared(count, atOnce, () => post(posts, options))));
}
