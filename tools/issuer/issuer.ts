// A real OpenID provider for development and tests, as a process of its own. Its users log in without a
// password; tests make it slow, broken or dishonest.
import { fileURLToPath } from "node:url";
import type { Claims, Command, Counts, Faults, Forged, Options } from "./faults.ts";
import { linesOf } from "./lines.ts";

export interface Issuer extends AsyncDisposable {
  url: string; // as its tokens name it
  clientId: string;
  clientSecret: string;
  exited: Promise<number>;
  /** What goes wrong from now on, in place of what did; without an argument, nothing. */
  faults(faults?: Faults): Promise<void>;
  /** From now on it signs with a new key, and publishes only that one. */
  rotateKeys(): Promise<void>;
  /** Claims of users besides those that they have; null removes one. */
  setUsers(users: Record<string, Claims>): Promise<void>;
  /** Announces the ends of sessions there from now on: back-channel logout. */
  announceTo(url: string): Promise<void>;
  sign(forged: Forged): Promise<string>;
  /** How many requests have arrived at each endpoint. */
  count(): Promise<Counts>;
  close(): Promise<void>;
}

export const defaultIssuerPort = 8086;

const fileOf = (name: string) => fileURLToPath(new URL(`provider/${name}`, import.meta.url));

// It has a lock of its own, because the provider brings packages in several versions.
const args = [
  ...["run", "--quiet", "--no-prompt", "--config", fileOf("deno.json")],
  ...["--allow-net=127.0.0.1,localhost", "--allow-env", "--allow-read"],
  fileOf("main.ts"),
];

export async function startIssuer(given: Partial<Options> = {}): Promise<Issuer> {
  const options: Options = {
    port: 0,
    clientId: "kenri-gateway",
    clientSecret: crypto.randomUUID(),
    ...given,
  };
  const child = new Deno.Command(Deno.execPath(), {
    args,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped", // only shown if it fails, because it warns of Deno and of its own defaults
    env: { NO_COLOR: "1" },
    detached: true, // Ctrl-C is for the starter, which ends it
  }).spawn();
  const answers = linesOf(child.stdout);
  const warnings = new Response(child.stderr).text();
  const input = child.stdin.getWriter();
  input.closed.catch(() => {});
  const ask = async (line: Options | Command): Promise<Record<string, unknown>> => {
    await input.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
    const { value, done } = await answers.next();
    if (done) throw new Error(`The issuer has ended: ${await warnings}`);
    return JSON.parse(value);
  };
  // One command at a time, so that each gets its own answer.
  let last: Promise<unknown> = Promise.resolve();
  const obeyed = (command: Command): Promise<unknown> => {
    const next = last.catch(() => {}).then(async () => (await ask(command))["done"]);
    last = next;
    return next;
  };
  const close = async () => {
    await input.close().catch(() => {}); // it ends when its input does
    await Promise.all([child.status, warnings, answers.return(undefined)]);
  };
  const { issuer } = await ask(options);
  return {
    url: String(issuer),
    clientId: options.clientId,
    clientSecret: options.clientSecret,
    exited: child.status.then(({ code }) => code),
    faults: async (faults = {}) => void await obeyed({ do: "faults", faults }),
    rotateKeys: async () => void await obeyed({ do: "rotate" }),
    setUsers: async (users) => void await obeyed({ do: "users", users }),
    announceTo: async (backchannel) => void await obeyed({ do: "announce", backchannel }),
    sign: async (forged) => String(await obeyed({ do: "sign", forged })),
    count: async () => await obeyed({ do: "count" }) as Counts,
    close,
    [Symbol.asyncDispose]: close,
  };
}
