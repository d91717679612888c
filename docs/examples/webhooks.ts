// Receives webhooks, and stores each event once in a SQLite file:
//
//   WEBHOOK_SECRET=whsec_… deno run -A docs/examples/webhooks.ts 8090 events.db
//
// The secret is in the answer that created the endpoint. It comes from the environment, because every
// user of a machine can see the arguments of programs. The program can be killed at any time, and a
// webhook may arrive twice.
import { createServer, type IncomingMessage } from "node:http";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const [port = "8090", file = "events.db"] = process.argv.slice(2);
const webhook = new Webhook(process.env["WEBHOOK_SECRET"] ?? "");
const longestBody = 1_048_576; // characters; more is no webhook of Kenri

const database = new DatabaseSync(file, { timeout: 5_000 });
database.exec(`
  create table if not exists events (
    webhook_id text primary key,
    type text not null,
    occurred_at text not null,
    data text not null
  )`);

// The id is the same in every repeat, so the primary key removes duplicates. What an event causes in the
// database belongs in the same transaction as this row; what it causes elsewhere is done later, by
// a process that reads this table.
const keep = database.prepare(`
  insert into events (webhook_id, type, occurred_at, data) values (?, ?, ?, ?)
  on conflict do nothing`);

const server = createServer(async (request, response) => {
  response.statusCode = await take(request).catch((error) => {
    if (error instanceof WebhookVerificationError) return 401;
    console.error(error);
    return 500; // Kenri sends it again
  });
  response.end();
});
server.listen(Number(port), "127.0.0.1", () => console.log(`listening on port ${port}`));

/** Returns the status to answer with. Only after 2xx Kenri does not send the event again. */
async function take(request: IncomingMessage): Promise<number> {
  const body = await bodyOf(request);
  if (body === undefined) return 413;
  const id = String(request.headers["webhook-id"]);
  // Checks the bytes as they came, and that they are of the last five minutes.
  const event = webhook.verify(body, request.headers as Record<string, string>) as {
    type: string;
    timestamp: string;
    data: object;
  };
  const { changes } = keep.run(id, event.type, event.timestamp, JSON.stringify(event.data));
  console.log(`${changes === 0 ? "again" : "received"}: ${event.type} ${id}`);
  return 204;
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let body = "";
  request.setEncoding("utf8");
  for await (const part of request) {
    if (body.length <= longestBody) body += part; // the rest is read, and not kept
  }
  return body.length <= longestBody ? body : undefined;
}
