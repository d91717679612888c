// The sender as a process, with its own permissions: who may use it, TLS, and when it refuses to start.
import assert from "node:assert/strict";
import { startReceiver } from "../../tools/receiver/receiver.ts";
import { root } from "../../tools/root.ts";
import { servicePermissions } from "../../tools/services.ts";
import { newAuthority } from "../process/certificates.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { call } from "../support/api.ts";
import { ask, codeOf, forTests, requestTo, startSender, token } from "./sending.ts";

Deno.test("only the token of notification may send, and a reader of metrics may read them", async () => {
  const prometheus = newClient("prometheus", "metrics:read", "send");
  const shop = newClient("shop", "orders:write", "send");
  const rotated = "the-new-token-of-the-sender-in-its-tests";
  await using sender = await startSender({
    SENDER_TOKEN: `${rotated},${token}`,
    ...tokensOf(prometheus, shop),
  });
  const request = requestTo("https://127.0.0.1/");
  for (const path of ["/send", "/check"]) {
    for (const credential of [token, rotated]) {
      const { status, json } = await ask(sender, request, { path, credential });
      assert.equal(status, 200);
      assert.equal(json.reason_code, "ADDRESS_BLOCKED");
    }
    const asPrometheus = await ask(sender, request, { path, credential: prometheus.token });
    assert.equal(asPrometheus.status, 403);
    for (const credential of [shop.token, `${token}x`, rotated.slice(1)]) {
      assert.equal((await ask(sender, request, { path, credential })).status, 401);
    }
    const anonymous = await call(sender.url + path, { method: "POST", body: "{}" });
    assert.equal(anonymous.status, 401);
  }
  const scrape = (headers: Record<string, string>) => call(`${sender.url}/metrics`, { headers });
  assert.equal((await scrape(bearer(token))).status, 403);
  const metrics = await scrape(bearer(prometheus.token));
  assert.match(metrics.text, /^sender_sends_total\{result="ADDRESS_BLOCKED"\} 2$/m);
  assert.equal((await call(`${sender.url}/readyz`)).status, 200);
  assert.doesNotMatch(JSON.stringify(sender.log), new RegExp(token));
});

Deno.test("a receiver is verified by its name, and one that fails gets nothing of the request", async () => {
  const authority = newAuthority();
  const file = await Deno.makeTempFile({ prefix: "kenri-ca-" });
  await Deno.writeTextFile(file, authority.cert);
  await using sender = await startSender({ ...forTests, NODE_EXTRA_CA_CERTS: file });
  const good = authority.issue({ name: "a", hosts: ["localhost", "127.0.0.1"] });
  const bad = {
    "of another name": authority.issue({ name: "a", hosts: ["other.example"] }),
    "that has expired": authority.issue({ name: "a", hosts: ["localhost"], days: -1 }),
    "of an unknown authority": newAuthority().issue({ name: "a", hosts: ["localhost"] }),
  };
  await using trusted = await startReceiver({ tls: good });
  for (const host of ["localhost", "127.0.0.1"]) {
    const { json } = await ask(sender, requestTo(`https://${host}:${trusted.port}/`));
    assert.equal(codeOf(json), "200", JSON.stringify(json));
  }
  assert.equal(trusted.received[0]?.headers.get("host"), `localhost:${trusted.port}`);
  for (const [which, tls] of Object.entries(bad)) {
    await using receiver = await startReceiver({ tls });
    const { json } = await ask(sender, requestTo(`https://localhost:${receiver.port}/`));
    assert.equal(codeOf(json), "TLS_FAILED", which);
    assert.equal(receiver.received.length, 0, which);
  }
  await using plain = await startReceiver();
  plain.behave("broken head");
  const toPlain = requestTo(`https://localhost:${plain.port}/`, { timeout_ms: 500 });
  const { json } = await ask(sender, toPlain);
  assert.match(codeOf(json), /^(TLS_FAILED|TIMEOUT)$/);
  await Deno.remove(file);
});

Deno.test("a request that it can't make as it is written is refused, and nothing is sent", async () => {
  await using receiver = await startReceiver();
  await using sender = await startSender(forTests);
  const good = requestTo(receiver.url);
  const bad: unknown[] = [
    ...["x", [], null, {}, { ...good, method: "GET" }, { ...good, url: 1 }],
    ...[0, -1, 1.5, 2 ** 31, "1"].map((timeout_ms) => ({ ...good, timeout_ms })),
    ...[
      "host",
      "Content-Length",
      "transfer-encoding",
      "Connection",
      "Upgrade",
      "Proxy-Authorization",
    ]
      .map((name) => ({ ...good, headers: { [name]: "1" } })),
    ...["a b", "a:", "", "a\r\nb", "é"].map((name) => ({ ...good, headers: { [name]: "1" } })),
    ...["a\r\nHost: b", "a\0", "é", 1].map((value) => ({ ...good, headers: { a: value } })),
  ];
  for (const fields of bad) {
    const { status, json } = await ask(sender, fields);
    assert.equal(status, 400, JSON.stringify(fields));
    assert.equal(json.code, "BAD_REQUEST");
  }
  const body = (length: number) => ask(sender, { ...good, body: '"'.repeat(length) });
  assert.equal((await body(66_000)).status, 413); // each quote takes two bytes
  assert.equal(receiver.received.length, 0);
  assert.equal((await body(16_384)).status, 200);
  assert.equal(receiver.received[0]?.body.length, 16_384);
  // The longest that a payload of 16 KiB can become.
  const longest = JSON.stringify(JSON.parse(`[${Array(3_276).fill("1e20").join()}]`));
  assert.equal((await ask(sender, { ...good, body: longest })).status, 200);
});

Deno.test("a url is judged by the sender's settings, before its name is resolved", async () => {
  await using strict = await startSender();
  await using open = await startSender({ ...forTests, SENDER_PORTS: "443, 9000" });
  const judged = async (sender: { url: string }, url: string) =>
    (await ask(sender, { url }, { path: "/check" })).json.reason_code;
  for (const url of ["https://no-such-host.invalid/", "https://8.8.8.8:8443/"]) {
    assert.equal(await judged(strict, url), undefined, url);
  }
  for (const url of ["http://a.test/", "https://10.0.0.1/", "https://8.8.8.8:9000/", "x"]) {
    assert.equal(await judged(strict, url), "ADDRESS_BLOCKED", url);
  }
  for (const url of ["http://a.test/", "http://127.0.0.1:1/", "https://8.8.8.8:9000/"]) {
    assert.equal(await judged(open, url), undefined, url);
  }
  const warnings = (log: { level: string }[]) => log.filter(({ level }) => level === "warning");
  assert.deepEqual([warnings(strict.log).length, warnings(open.log).length], [0, 2]);
});

Deno.test("it does not start with permissions that lack the denial of what is not public", async () => {
  const settings = { SENDER_TOKEN: token, SENDER_HTTP_PORT: "0", NO_COLOR: "1" };
  const start = async (net: string[], more = {}) => {
    const env: Record<string, string> = { ...settings, ...more };
    const flags = servicePermissions("sender", (name) => env[name])
      .filter((flag) => !/^--(allow|deny)-net/.test(flag));
    const args = ["run", "--no-prompt", ...flags, ...net, `${root}sender/main.ts`];
    const signal = AbortSignal.timeout(20_000); // a sender that starts would not end
    const { code, stdout } = await new Deno.Command(Deno.execPath(), { args, env, signal })
      .output();
    return { code, output: new TextDecoder().decode(stdout) };
  };
  const without = (pattern: RegExp) =>
    servicePermissions("sender", (name) => settings[name as keyof typeof settings])
      .filter((flag) => /^--(allow|deny)-net/.test(flag)).map((flag) => flag.replace(pattern, ""));
  const lacking: [string[], Record<string, string>?][] = [
    [[]],
    [["--allow-net"]],
    [["--allow-net=127.0.0.1:0"]],
    [without(/,169\.254\.0\.0\/16/)],
    [without(/,\[[0:]+1\]/)],
    [["--allow-net", "--deny-net=10.0.0.0/8"]],
    [without(/^$/), { SENDER_ALLOW_ADDRESSES: "10.1.0.0/16" }], // flags for other settings
  ];
  for (const [net, more] of lacking) {
    const { code, output } = await start(net, more);
    assert.equal(code, 1, net.join(" "));
    assert.match(
      output,
      /need permissions that sender was not started with.*--deny-net=0\.0\.0\.0/,
    );
    assert.doesNotMatch(output, /Listening/);
  }
});
