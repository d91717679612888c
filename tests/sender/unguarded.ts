// The sender with the check of addresses switched off, in a process with its permissions: what is refused
// now is refused by Deno. Prints one outcome for each address or name.
import { exchange } from "../../sender/exchange.ts";

const [port, ...hosts] = Deno.args;
const outcomes: string[] = [];
for (const host of hosts) {
  const url = new URL(`http://${host.includes(":") ? `[${host}]` : host}:${port}/`);
  const request = {
    method: "POST",
    url: url.href,
    headers: {},
    body: "{}",
    timeout_ms: 500,
  } as const;
  const limit = AbortSignal.timeout(500);
  const outcome = await exchange({ address: host, port: Number(port), host, url }, request, limit);
  outcomes.push("reason_code" in outcome ? outcome.reason_code : `${outcome.status}`);
}
console.log(JSON.stringify(outcomes));
