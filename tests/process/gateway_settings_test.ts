// What the gateway needs to know, and what it refuses.
import assert from "node:assert/strict";
import { readConfig } from "../../gateway/config.ts";
import { type Given, problemsWhen } from "./problems.ts";

const good = {
  GATEWAY_PUBLIC_URL: "https://play.example",
  GATEWAY_ISSUER: "https://issuer.example/realms/kenri",
  GATEWAY_CLIENT_ID: "kenri",
  GATEWAY_SESSION_KEYS: "A".repeat(43),
  GATEWAY_ACCOUNT_URL: "http://account:8082",
  NATS_URL: "nats://127.0.0.1:4222",
};
const configWith = (more: Given = {}) =>
  readConfig((name) => ({ ...good, ...more } as Given)[name]);
const problemsOf = (more: Given) => problemsWhen(() => configWith(more));

Deno.test("the gateway asks for its address, its issuer, its keys and the account service", () => {
  const nothing = Object.fromEntries(Object.keys(good).map((name) => [name, undefined]));
  const required = Object.keys(good).map((name) => `${name} is required`);
  assert.deepEqual(problemsOf(nothing).sort(), required.sort());
  assert.deepEqual(problemsOf({}), []);
});

Deno.test("the gateway's address and its issuer are http only on this machine", () => {
  for (const url of ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000"]) {
    assert.deepEqual(problemsOf({ GATEWAY_PUBLIC_URL: url, GATEWAY_ISSUER: url }), []);
  }
  const others = ["http://play.example", "http://127.0.0.1.play.example", "http://localhost.me"];
  for (const url of [...others, "http://0.0.0.0", "http://[::]", "http://192.168.0.1"]) {
    assert.match(
      `${problemsOf({ GATEWAY_PUBLIC_URL: url })}`,
      /^GATEWAY_PUBLIC_URL must begin/,
    );
    assert.match(`${problemsOf({ GATEWAY_ISSUER: url })}`, /^GATEWAY_ISSUER must begin/);
  }
  const { publicUrl } = configWith({ GATEWAY_PUBLIC_URL: "HTTPS://Play.Example:443/" });
  assert.equal(publicUrl, "https://play.example", "as an Origin header has it");
});

Deno.test("all keys of sessions are read, in their order, and none is repeated", () => {
  const written = ["B".repeat(43), "A".repeat(43), `${"_".repeat(42)}8=`];
  const { keys } = configWith({ GATEWAY_SESSION_KEYS: written.join() }).session;
  const encoded = keys.map((key) => key.toBase64({ alphabet: "base64url" }));
  assert.deepEqual(encoded.map((key) => key.slice(0, 42)), written.map((key) => key.slice(0, 42)));
  for (const bad of [`${written[0]},`, `${written[0]} ${written[1]}`, "5ec7e7".repeat(7)]) {
    const [problem, ...rest] = problemsOf({ GATEWAY_SESSION_KEYS: bad });
    assert.match(problem ?? "", /^GATEWAY_SESSION_KEYS must be 32 random bytes/);
    assert.doesNotMatch(problem ?? "", /BBB|5ec7e7/);
    assert.deepEqual(rest, []);
  }
});

Deno.test("a session does not idle longer than it lasts", () => {
  assert.deepEqual(
    problemsOf({ GATEWAY_SESSION_IDLE: "1h", GATEWAY_SESSION_TTL: "1h" }),
    [],
  );
  const [problem, ...rest] = problemsOf({ GATEWAY_SESSION_TTL: "11h" });
  assert.match(problem ?? "", /^GATEWAY_SESSION_IDLE must not be above GATEWAY_SESSION_TTL/);
  assert.deepEqual(rest, []);
});
