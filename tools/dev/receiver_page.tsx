// A receiver of webhooks for `deno task dev`: a page that shows what arrives, whether its signature is
// right, and how the endpoint does when the receiver fails.
import type { JSX } from "hono/jsx/jsx-runtime";
import { Webhook } from "standardwebhooks";
import { type Endpoint, notificationClient } from "../../client/client.ts";
import { type Behaviour, type Received, startReceiver } from "../receiver/receiver.ts";

export const receiverPort = "KENRI_RECEIVER_PORT";
export const defaultReceiverPort = "8085";

export interface ReceiverPage extends AsyncDisposable {
  url: string;
  /** Registers its endpoint at the notification service, and says how that went. */
  register(notification: string): Promise<string>;
}

interface Arrival {
  at: Date;
  id: string;
  type: string;
  problem: string | undefined; // with the signature
  times: number;
  body: string;
}

interface State {
  arrivals: Arrival[]; // the newest first
  answer: string;
  endpoint: Endpoint | string; // or why there is none
}

const mostShown = 100;

const answers: Record<string, Behaviour> = {
  "204": 204,
  "500": 500,
  "429, try again in 5 s": { status: 429, headers: { "Retry-After": "5" } },
  "nothing": "hang",
};

export async function startReceiverPage(port: number): Promise<ReceiverPage> {
  const receiver = await startReceiver({ port });
  const state: State = { arrivals: [], answer: "204", endpoint: "not registered yet" };
  const hook = `${receiver.url}/webhooks`;
  let secret: string | undefined;
  let look = (): Promise<Endpoint | string> => Promise.resolve(state.endpoint);
  let resume = (): Promise<unknown> => Promise.resolve();
  receiver.behave(404);
  receiver.behaveAt("/webhooks", (request) => {
    receiver.received.length = 0; // only what is shown is kept
    take(state, request, secret);
    return answers[state.answer] ?? 204;
  });
  receiver.behaveAt("/", async () => {
    receiver.received.length = 0;
    state.endpoint = await look();
    return {
      headers: { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" },
      body: `<!doctype html>${Page({ ...state, hook })}`,
    };
  });
  const back = { status: 303, headers: { Location: "/" } };
  receiver.behaveAt("/answer", ({ body }) => {
    state.answer = new URLSearchParams(body).get("answer") ?? state.answer;
    return back;
  });
  receiver.behaveAt("/resume", async () => {
    await resume().catch(() => {}); // the page shows the state that it is in
    return back;
  });
  return {
    url: receiver.url,
    register: async (notification) => {
      const kenri = notificationClient(notification, { deadlineMs: 2_000 });
      try {
        const made = await registered(kenri, hook);
        secret = made.secret;
        look = () => kenri.findEndpoint(made.id).catch((error) => String(error));
        resume = () => kenri.resumeEndpoint(made.id);
        return `Webhooks arrive at ${receiver.url}`;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        state.endpoint = `It has no endpoint: ${reason}`;
        return `No webhooks arrive at ${receiver.url}: ${reason}`;
      }
    },
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  };
}

const description = "The page of deno task dev";

// Nobody can look up a secret, so the endpoint of an earlier start gets a new one.
async function registered(
  kenri: ReturnType<typeof notificationClient>,
  url: string,
): Promise<{ id: string; secret: string | undefined }> {
  const key = crypto.randomUUID();
  const { endpoints } = await kenri.listEndpoints({ limit: 200 });
  const known = endpoints.find((endpoint) => endpoint.description === description);
  if (known && known.url !== url) await kenri.changeEndpoint(known.endpoint_id, { url });
  const made = known
    ? await kenri.rotateSecret(key, known.endpoint_id, { overlap: "0s" })
    : await kenri.createEndpoint(key, { url, description });
  return { id: made.endpoint_id, secret: made.secret };
}

function take({ arrivals }: State, { headers, body }: Received, secret: string | undefined): void {
  const id = headers.get("webhook-id") ?? "";
  const problem = problemWith(body, headers, secret);
  const known = problem === undefined
    ? arrivals.find((arrival) => arrival.id === id && arrival.problem === undefined)
    : undefined;
  if (known) return void known.times++;
  arrivals.unshift({ at: new Date(), id, type: typeOf(body), problem, times: 1, body });
  arrivals.length = Math.min(arrivals.length, mostShown);
}

function problemWith(
  body: string,
  headers: Headers,
  secret: string | undefined,
): string | undefined {
  if (!headers.has("webhook-signature")) return "not signed, as orders to a url are";
  try {
    new Webhook(secret ?? "").verify(body, Object.fromEntries(headers));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function typeOf(body: string): string {
  try {
    return String(Object(JSON.parse(body)).type ?? "–");
  } catch {
    return "not JSON";
  }
}

const style = `
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-top: 1px solid #8884; padding: .4rem .6rem; text-align: left; vertical-align: top }
code { font-size: .85em; overflow-wrap: anywhere }
form { display: inline }
.bad { color: #b00020 }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark } .bad { color: #ff8a80 } }`;

function Page({ arrivals, answer, endpoint, hook }: State & { hook: string }): JSX.Element {
  return (
    <html lang="en">
      <head>
        <title>Webhooks</title>
        <meta charset="utf-8" />
        <meta http-equiv="refresh" content="2" />
        <style dangerouslySetInnerHTML={{ __html: style }} />
      </head>
      <body>
        <h1>Webhooks that arrive at {hook}</h1>
        <p>
          The endpoint: <Health endpoint={endpoint} />
        </p>
        <form method="post" action="/answer">
          The receiver answers with{" "}
          {Object.keys(answers).map((name) => (
            <button type="submit" name="answer" value={name} disabled={name === answer}>
              {name}
            </button>
          ))}
        </form>
        <table>
          <tr>
            <th>at</th>
            <th>type</th>
            <th>webhook-id</th>
            <th>signature</th>
            <th>arrived</th>
            <th>body</th>
          </tr>
          {arrivals.map((arrival) => <Row {...arrival} />)}
        </table>
        {arrivals.length === 0 ? <p>Nothing yet: change something, or run deno task demo.</p> : ""}
      </body>
    </html>
  );
}

function Health({ endpoint }: { endpoint: Endpoint | string }): JSX.Element {
  if (typeof endpoint === "string") return <span class="bad">{endpoint}</span>;
  const { endpoint_id, state, failures, last_reason } = endpoint;
  const isWell = state === "ACTIVE" && failures === 0;
  return (
    <>
      <code>{endpoint_id}</code> is <strong class={isWell ? "" : "bad"}>{state}</strong>
      {isWell ? "" : `, ${failures} failures in a row, the last one ${last_reason} `}
      {state === "ACTIVE" ? "" : (
        <form method="post" action="/resume">
          <button type="submit">Resume</button>
        </form>
      )}
    </>
  );
}

function Row({ at, type, id, problem, times, body }: Arrival): JSX.Element {
  return (
    <tr>
      <td>{at.toISOString().slice(11, 23)}</td>
      <td>{type}</td>
      <td>
        <code>{id}</code>
      </td>
      <td class={problem === undefined ? "" : "bad"}>{problem ?? "verified"}</td>
      <td>{times === 1 ? "once" : `${times} times`}</td>
      <td>
        <code>{body}</code>
      </td>
    </tr>
  );
}
