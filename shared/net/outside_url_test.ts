import assert from "node:assert/strict";
import { type OutsideRules, readOutsideUrl } from "./outside_url.ts";
import { readRange } from "./public_addresses.ts";

const usual: OutsideRules = { plainHttp: false, ports: [443, 8443], allowed: [] };
const allowed = ["10.1.0.0/16", "::1"].flatMap((range) => readRange(range) ?? []);

const portOf = (url: string, rules = usual) => {
  const read = readOutsideUrl(url, rules);
  return typeof read === "string" ? read : read.port;
};

Deno.test("a public url is read with its host and its port", () => {
  const [at, v6] = ["https://8.8.8.8:8443/a?b", "HTTPS://[2606:4700::1111]"];
  assert.deepEqual([portOf("https://a.test/"), portOf(at), portOf(v6)], [443, 8443, 443]);
  const read = readOutsideUrl(v6, usual);
  assert.equal(typeof read === "string" ? read : read.host, "2606:4700::1111");
  assert.equal(portOf("https://A.Test:8443?a#b"), 8443);
});

Deno.test("each problem has a sentence, which repeats nothing of the url", () => {
  const problems: [url: string, problem: RegExp][] = [
    ["http://secret.test/", /begin with https/],
    ["secret", /begin with https/],
    ["https://secret@a.test/", /user or a password/],
    ["https://127.1/secret", /usual form/],
    ["https://10.0.0.1/secret", /not public/],
    ["https://8.8.8.8:444/secret", /ports 443, 8443/],
    [`https://a.test/${"secret".repeat(400)}`, /at most 2048/],
  ];
  for (const [url, problem] of problems) {
    assert.match(`${portOf(url)}`, problem, url);
    assert.doesNotMatch(`${portOf(url)}`, /secret/);
  }
});

Deno.test("plain http is allowed with its port, and an allowed address has any port", () => {
  const open = { ...usual, plainHttp: true };
  assert.equal(portOf("http://8.8.8.8/", open), 80);
  assert.match(`${portOf("http://8.8.8.8:81/", open)}`, /ports/);
  const inside = { ...usual, allowed };
  assert.equal(portOf("https://10.1.2.3:5000/", inside), 5000);
  assert.equal(portOf("https://[::1]:1/", inside), 1);
  assert.match(`${portOf("https://10.2.0.1/", inside)}`, /not public/);
  assert.match(`${portOf("http://10.1.2.3/", inside)}`, /https/);
});
