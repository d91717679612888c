import { type OpenAPIHono, z } from "@hono/zod-openapi";
import { getLogger } from "@logtape/logtape";
import assert from "node:assert/strict";
import { openAuthenticator } from "../access/authenticator.ts";
import { createApp } from "../http/app.ts";
import { unavailable } from "../http/errors.ts";
import { pathPart } from "../http/route.ts";
import { Batch } from "../queue/batch.ts";
import type { Answer } from "./answer.ts";
import { addCommand, type Result, type Sender } from "./route.ts";

interface Input {
  name: string;
  sender: Sender;
}

const answers: Record<string, Answer> = {
  ok: { status: 201, body: '{"a":1}', outcome: "applied" },
  again: { status: 201, body: '{"a":1}', outcome: "replayed" },
  empty: { status: 204, body: "", outcome: "applied", headers: { ETag: '"7"' } },
};

const log = getLogger("test"); // prints nothing

interface Started {
  app: OpenAPIHono;
  inputs: Input[];
  results: Result[];
}

// A route with a key and a body, one with an optional key, and two on one path: with neither, and with
// an optional field.
function start(maxWaiting = 10): Started {
  const results: Result[] = [];
  const inputs: Input[] = [];
  const batch = new Batch({
    flush: (given: Input[]) => {
      inputs.push(...given);
      return Promise.resolve(given.map(({ name }) => {
        if (name === "away") throw unavailable("the database can't be reached");
        if (name === "bug") throw new TypeError("a bug");
        return answers[name] as Answer;
      }));
    },
    maxItems: 10,
    maxFlushes: 1,
    maxWaiting,
  });
  const app = createApp({ title: "Test", checks: {}, authenticator: openAuthenticator, log });
  const count = (result: Result) => results.push(result);
  const about = { scope: "metrics:read" as const, responses: { 201: { description: "" } } };
  addCommand(app, batch, {
    route: { ...about, method: "post", path: "/things" },
    key: { advice: "any", example: "key-1" },
    body: { schema: z.object({ name: z.string("is required") }), example: { name: "ok" } },
    toInput: ({ name }, sender) => ({ name, sender }),
    count,
  });
  addCommand(app, batch, {
    route: { ...about, method: "post", path: "/tries" },
    key: { advice: "any", example: "key-1", isOptional: true },
    body: { schema: z.object({}), example: {} },
    invalid: { BLOCKED: "it is blocked" },
    toInput: (_, sender) => ({ name: "ok", sender }),
    count,
  });
  addCommand(app, batch, {
    route: { ...about, method: "delete", path: "/things/{name}" },
    toInput: (_, sender, req) => ({ name: pathPart(req, "name"), sender }),
    count,
  });
  addCommand(app, batch, {
    route: { ...about, method: "patch", path: "/things/{name}" },
    body: { schema: z.object({ name: z.string().optional() }), example: {} },
    toInput: ({ name = "ok" }, sender) => ({ name, sender }),
    refusals: { description: "It is finished", messages: { FINISHED: "already finished" } },
    count,
  });
  return { app, inputs, results };
}

async function post(
  { app }: Started,
  body: unknown,
  headers: Record<string, string> = {},
  path = "/things",
): Promise<Response> {
  return await app.request(`http://127.0.0.1${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

async function remove({ app }: Started, name: string): Promise<Response> {
  return await app.request(`http://127.0.0.1/things/${name}`, { method: "DELETE" });
}

const key = { "Idempotency-Key": "key-1" };

Deno.test("an answer is sent as it is, with its trace, and says whether it was stored", async () => {
  const started = start();
  for (const name of ["ok", "again"]) {
    const answer = await post(started, { name }, { ...key, "X-Trace-Id": "trace-1" });
    assert.deepEqual([answer.status, await answer.text()], [201, '{"a":1}']);
    assert.equal(answer.headers.get("Content-Type"), "application/json");
    assert.equal(answer.headers.get("X-Trace-Id"), "trace-1");
    assert.equal(answer.headers.get("Idempotency-Replayed"), name === "again" ? "true" : null);
  }
  assert.deepEqual(started.results, ["applied", "replayed"]);
  const [input] = started.inputs;
  assert.deepEqual(input?.sender, {
    ...{ caller: "", idempotencyKey: "key-1", traceId: "trace-1", traceparent: null },
  });
});

Deno.test("a route may take neither a key nor a body, and answer without a body", async () => {
  const started = start();
  const answer = await remove(started, "empty");
  assert.deepEqual([answer.status, await answer.text()], [204, ""]);
  assert.equal(answer.headers.get("ETag"), '"7"');
  assert.equal(answer.headers.get("Content-Type"), null);
  assert.equal(started.inputs[0]?.sender.idempotencyKey, "");
});

Deno.test("a key may be optional, but never invalid", async () => {
  const started = start();
  const tried = async (headers: Record<string, string>) =>
    (await post(started, {}, headers, "/tries")).status;
  assert.deepEqual([await tried({}), await tried(key)], [201, 201]);
  assert.deepEqual(started.inputs.map(({ sender }) => sender.idempotencyKey), ["", "key-1"]);
  assert.deepEqual([
    await tried({ "Idempotency-Key": "" }),
    await tried({ "Idempotency-Key": "a b" }),
  ], [
    400,
    400,
  ]);
});

Deno.test("a path may have several methods, and the others are refused", async () => {
  const started = start();
  const ask = (method: string, body?: string) =>
    started.app.request("http://127.0.0.1/things/empty", {
      method,
      ...(body === undefined ? {} : { body, headers: { "Content-Type": "application/json" } }),
    });
  assert.equal((await ask("DELETE")).status, 204);
  assert.equal((await ask("PATCH", "{}")).status, 201);
  const refused = await ask("POST", "{}");
  assert.deepEqual([refused.status, refused.headers.get("Allow")], [405, "DELETE, PATCH"]);
  assert.deepEqual(started.results, ["applied", "applied"]);
});

Deno.test("what can't be read is refused before it reaches the batch, and the key is read first", async () => {
  const started = start();
  const refused = async (body: unknown, headers?: Record<string, string>) => {
    const answer = await post(started, body, headers);
    return [answer.status, (await answer.json()).message];
  };
  assert.deepEqual(await refused({}), [400, "Idempotency-Key is required"]);
  assert.deepEqual(await refused({}, { "Idempotency-Key": "a b" }), [
    400,
    "Idempotency-Key must be 1 to 255 visible ASCII characters",
  ]);
  assert.deepEqual(await refused({}, key), [400, "name is required"]);
  assert.deepEqual(await refused({}, { ...key, "Content-Type": "text/xml" }), [
    415,
    "Content-Type must be application/json",
  ]);
  assert.deepEqual([started.inputs, started.results], [[], Array(4).fill("invalid")]);
});

Deno.test("a failure is counted as one of the service, unless a dependency is unavailable", async () => {
  const started = start();
  assert.equal((await post(started, { name: "away" }, key)).status, 503);
  assert.equal((await post(started, { name: "bug" }, key)).status, 500);
  assert.deepEqual(started.results, ["unavailable", "error"]);
});

Deno.test("a request to a full batch is refused unread", async () => {
  const started = start(0);
  const answer = await post(started, "no object");
  assert.deepEqual([answer.status, started.results], [503, ["unavailable"]]);
});

Deno.test("a route describes the headers, answers and errors that all commands have", async () => {
  const answer = await start().app.request("http://127.0.0.1/openapi.json");
  const { paths } = await answer.json();
  const { post, patch, delete: remove } = { ...paths["/things"], ...paths["/things/{name}"] };
  const names = ({ parameters }: { parameters: { name: string }[] }) =>
    parameters.map(({ name }) => name);
  assert.deepEqual(names(post), ["Idempotency-Key", "traceparent", "X-Trace-Id"]);
  assert.deepEqual(names(remove), ["traceparent", "X-Trace-Id"]);
  const every = ["401", "403", "500", "503"];
  const statuses = ({ responses }: { responses: object }) =>
    Object.keys(responses).filter((status) => !every.includes(status));
  assert.deepEqual(statuses(post), ["201", "400", "408", "409", "413", "415"]);
  assert.deepEqual(statuses(remove), ["201"]);
  assert.deepEqual(Object.keys(post.responses[201].headers), [
    "X-Trace-Id",
    "Idempotency-Replayed",
  ]);
  const examples = ({ content }: { content: Record<string, { examples: object }> }) =>
    Object.keys(content["application/json"]?.examples ?? {});
  assert.deepEqual(examples(post.responses[409]), ["IDEMPOTENCY_KEY_CONFLICT"]);
  assert.deepEqual(statuses(patch), ["201", "400", "408", "409", "413", "415"]);
  assert.deepEqual(examples(patch.responses[409]), ["FINISHED"]);
  const tries = paths["/tries"].post;
  assert.deepEqual(examples(tries.responses[400]), ["BAD_REQUEST", "BLOCKED"]);
  const needed = ({ parameters: [key] }: { parameters: { required?: boolean }[] }) => key?.required;
  assert.deepEqual([needed(post), needed(tries)], [true, false]);
  const { value } = patch.responses[400].content["application/json"].examples.BAD_REQUEST;
  assert.equal(value.message, "request body is required");
});
