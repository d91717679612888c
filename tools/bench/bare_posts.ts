// POSTs as the sender makes them, each over a connection of its own, but without order, ledger and
// token. In a process of its own, as the sender is. Arguments: the posts as JSON. Prints the seconds.
import { fileURLToPath } from "node:url";
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
      ...["run", "--cached-only", "--no-check", `--allow-net=${new URL(posts.url).host}`],
      ...[fileURLToPath(import.meta.url), JSON.stringify(posts)],
    ],
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("The bare POSTs failed; the error is above");
  return Number(new TextDecoder().decode(stdout));
}

async function post({ url, body }: Posts, client: Deno.HttpClient): Promise<void> {
  const headers = {
    "Content-Type": "application/json",
    "Idempotency-Key": crypto.randomUUID(),
    "User-Agent": "kenri",
  };
  const answer = await fetch(url, { method: "POST", headers, body, client });
  await answer.text();
  if (answer.status !== 200) throw new Error(`The sink answered ${answer.status}`);
}

if (import.meta.main) {
  const posts: Posts = JSON.parse(Deno.args[0] ?? "");
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  const { count, atOnce } = posts;
  console.log(await timed(count, () => shared(count, atOnce, () => post(posts, client))));
}
