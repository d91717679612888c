// The process of the issuer: it reads options and commands as lines of JSON, answers each with a line,
// and ends when its starter does.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Command, Counts, Faults, Forged, Options } from "../faults.ts";
import { linesOf } from "../lines.ts";
import { changeJson, endpointOf, sendPage, withFault } from "./answers.ts";
import { decodeJwt } from "jose";
import { forge, newKey } from "./keys.ts";
import { loginPage, startPage } from "./pages.ts";
import { type Made, makeProvider } from "./provider.ts";
import { isUser } from "./users.ts";

console.info = console.warn; // the provider's notices must not be among the answers
const lines = linesOf(Deno.stdin.readable);
const { value: first } = await lines.next();
if (first === undefined) Deno.exit(0);
const options: Options = JSON.parse(first);

const server = createServer((request, response) => void serve(request, response));
await new Promise<void>((listening) => server.listen(options.port, "127.0.0.1", listening));
const { port } = server.address() as AddressInfo;

const issuer = `http://127.0.0.1:${port}`;
const made: Made = { ...options, issuer, key: await newKey(), users: {} };
let provider = makeProvider(made);
let faults: Faults = {};
const counts: Counts = {};

say({ issuer });
for await (const line of lines) say({ done: await obey(JSON.parse(line)) });
Deno.exit(0);

async function obey(command: Command): Promise<unknown> {
  switch (command.do) {
    case "faults":
      return void (faults = command.faults);
    case "users":
      return void Object.assign(made.users, command.users);
    case "rotate":
      made.key = await newKey();
      return void (provider = makeProvider(made));
    case "announce":
      made.backchannel = command.backchannel;
      return void (provider = makeProvider(made));
    case "sign":
      return await forge(command.forged, made.key);
    case "count":
      return counts;
  }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? "/", issuer);
  const endpoint = endpointOf(pathname);
  counts[endpoint] = (counts[endpoint] ?? 0) + 1;
  try {
    const fault = { ...faults.everywhere, ...faults.at?.[endpoint] };
    if (await withFault(fault, response)) return;
    if (pathname === "/") return sendPage(response, startPage());
    if (pathname.startsWith("/interaction/")) return await logIn(request, response, pathname);
    if (endpoint === "token" && faults.idToken) forgeIdToken(response, faults.idToken);
    await provider.callback()(request, response);
  } catch {
    if (!response.headersSent) response.writeHead(400);
    response.end("That did not work");
  }
}

function forgeIdToken(response: ServerResponse, { claims, ...how }: Partial<Forged>): void {
  changeJson(response, async ({ id_token, ...others }) => {
    if (typeof id_token !== "string") return others; // it is a refusal
    const forged = { ...how, claims: { ...decodeJwt(id_token), ...claims } };
    return { ...others, id_token: await forge(forged, made.key) };
  });
}

async function logIn(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  await provider.interactionDetails(request, response); // throws if this browser has not begun it
  if (request.method !== "POST") return sendPage(response, loginPage(path));
  let body = "";
  for await (const chunk of request) body += chunk;
  const user = new URLSearchParams(body).get("user");
  if (!isUser(user)) return sendPage(response, loginPage(path));
  await provider.interactionFinished(request, response, { login: { accountId: user } });
}

function say(answer: Record<string, unknown>): void {
  console.log(JSON.stringify(answer));
}
