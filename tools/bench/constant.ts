// An HTTP service that returns a constant, which is the limit for every answer. Arguments: port, length
// of the answer in bytes.
import { Hono } from "hono";

const answer = JSON.stringify({ constant: "x".repeat(Math.max(0, Number(Deno.args[1]) - 15)) });
const app = new Hono().all(
  "*",
  () => new Response(answer, { headers: { "Content-Type": "application/json" } }),
);
Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.args[0]) }, (request) => app.fetch(request));
