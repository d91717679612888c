// H-106: no request leads inward. Two guards refuse it, the sender's own check and the permissions of its
// process, and each is shown alone.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { deniedHosts } from "../../shared/net/public_addresses.ts";
import { send, type SendOptions } from "../../sender/send.ts";
import { ways } from "../process/permissions.ts";
import { startReceiver } from "../../tools/receiver/receiver.ts";
import { codeOf, inside, outside, rangesOf, requestTo } from "./sending.ts";

// Whatever is public would be connected to, and must not be: nothing here leaves this machine.
const refusedBy = async (url: string, options: SendOptions) =>
  codeOf(await send(requestTo(url, { timeout_ms: 1_000 }), options));

// Written independently of the lists in the code.
const inward = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"],
  ...["127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.169.254", "172.16.0.1"],
  ...["172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"],
  ...["198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255"],
  ...["240.0.0.1", "255.255.255.255"],
];
const inwardV6 = [
  ...["::", "::1", "::7f00:1", "::ffff:7f00:1", "::ffff:a00:1", "::ffff:808:808"],
  ...["64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::"],
  ...["3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"],
];
const spellings = [
  ...["127.1", "127.0.1", "0", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1"],
  ...["127.0.0.01", "127.0.0.1.", "１２７.0.0.1", "127。0。0。1", "%31%32%37.0.0.1", "0X7F.0.0.1"],
  ...["[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::FFFF:127.0.0.1]", "[::127.0.0.1]"],
  ...["134744072", "0x8.8.8.8", "8.8.2056"], // a public address, oddly written
];

Deno.test("H-106: every form of an address that is not public is refused by the sender's own check", async () => {
  const hosts = [...inward, ...inwardV6.map((address) => `[${address}]`), ...spellings];
  for (const rules of [outside.rules, { ...outside.rules, plainHttp: true }]) {
    for (const scheme of ["https", ...rules.plainHttp ? ["http"] : []]) {
      for (const host of hosts) {
        const url = `${scheme}://${host}/`;
        assert.equal(await refusedBy(url, { ...outside, rules }), "ADDRESS_BLOCKED", url);
      }
    }
  }
});

Deno.test("H-106: a name is refused if any of its addresses is not public", async () => {
  for (const address of [...inward, ...inwardV6, "fe80::1%eth0", "no address"]) {
    for (const found of [[address], ["93.184.216.34", address], [address, "93.184.216.34"]]) {
      const options = { ...outside, resolve: () => Promise.resolve(found) };
      assert.equal(await refusedBy("https://a.test/", options), "ADDRESS_BLOCKED", `${found}`);
    }
  }
  for (const name of ["localhost", "LOCALHOST"]) {
    assert.equal(await refusedBy(`https://${name}/`, outside), "ADDRESS_BLOCKED", name);
  }
});

Deno.test("H-106: a name that changes its address is resolved once for a request, and judged each time", async () => {
  await using receiver = await startReceiver();
  const answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]];
  const rules = { ...inside.rules, allowed: rangesOf("127.0.0.1") };
  const options = { ...inside, rules, resolve: () => Promise.resolve(answers.shift() ?? []) };
  const url = `http://rebinding.test:${receiver.port}/`;
  assert.equal(await refusedBy(url, options), "200");
  assert.equal(await refusedBy(url, options), "ADDRESS_BLOCKED");
  assert.equal(await refusedBy(url, options), "200");
  assert.equal(answers.length, 0);
  assert.equal(receiver.received.length, 2);
});

Deno.test("H-106: a redirect is an answer, and is not followed", async () => {
  await using target = await startReceiver();
  await using receiver = await startReceiver();
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.behave({ status, headers: { Location: target.url, Refresh: `0; url=${target.url}` } });
    assert.equal(await refusedBy(receiver.url, inside), `${status}`);
  }
  assert.equal(target.connections, 0);
});

Deno.test("H-106: http, users, other ports and what is no url of a host are refused", async () => {
  const resolve = () => Promise.reject(new Error("must not be asked"));
  const bad = [
    ...["http://a.test/", "http://a.test:443/", "ftp://a.test/", "file:///etc/passwd", "data:,a"],
    ...["https://u@a.test/", "https://u:p@a.test/", "https://:p@a.test/", "https://@a.test/"],
    ...[
      "https:a.test",
      "https:/a.test/",
      "https:\\\\a.test/",
      "https://a.test\\@b.test/",
      "//a.test",
    ],
    ...[" https://a.test/", "https://a.test/ ", "https://a.te\nst/", "https://a.test/a b", "", "a"],
    ...["https://", "https:///", "https://a.test:65536/", "https://a.test:-1/", "https://a.test:/"],
    ...["https://é.test/", "https://a%2etest/", `https://a.test/${"a".repeat(2_048)}`],
  ];
  const options = { ...outside, resolve };
  for (const url of bad) assert.equal(await refusedBy(url, options), "ADDRESS_BLOCKED", url);
  const somewhere = { ...outside, resolve: () => Promise.resolve(["93.184.216.34"]) };
  for (const port of [1, 22, 25, 80, 444, 5432, 8080, 8084]) {
    assert.equal(
      await refusedBy(`https://a.test:${port}/`, somewhere),
      "ADDRESS_BLOCKED",
      `${port}`,
    );
  }
});

Deno.test("H-106: the sender does not send to itself, even where its address is allowed", async () => {
  await using itself = await startReceiver();
  const own = { hostname: "127.0.0.1", port: itself.port };
  assert.equal(await refusedBy(itself.url, { ...inside, own }), "ADDRESS_BLOCKED");
  for (const hostname of ["0.0.0.0", "::"]) {
    const everywhere = { ...inside, own: { hostname, port: itself.port } };
    for (const host of ["127.0.0.1", "localhost", "127.0.0.5"]) {
      const url = `http://${host}:${itself.port}/`;
      assert.equal(await refusedBy(url, everywhere), "ADDRESS_BLOCKED", url);
    }
  }
  assert.equal(itself.connections, 0);
});

for (const [how, way] of Object.entries(ways)) {
  Deno.test(`H-106: without the check, started ${how}, the runtime refuses every IPv4 form`, async () => {
    await using receiver = await startReceiver({ hostname: "127.0.0.2" });
    const mapped = inward.map((address) => `::ffff:${address}`);
    const hosts = [...inward, ...mapped, "::1", "::", "fd00:ec2::254", "127.0.0.2", "localhost"];
    // It listens elsewhere, so that this machine's usual address is denied, too.
    const settings = { SENDER_TOKEN: "t".repeat(32), SENDER_HTTP_HOST: "127.0.0.9" };
    const flags = way("sender", (name) => settings[name as keyof typeof settings]);
    const outcomes = await outcomesOf(flags, receiver.port, hosts);
    assert.deepEqual(outcomes, hosts.map((host) => `${host}: ADDRESS_BLOCKED`));
    assert.equal(receiver.connections, 0);
    // What is allowed is reached, so the refusals above are not for another reason.
    const also = { ...settings, SENDER_ALLOW_ADDRESSES: "127.0.0.2" };
    const wider = way("sender", (name) => also[name as keyof typeof also]);
    const reached = await outcomesOf(wider, receiver.port, ["127.0.0.2", "10.0.0.1"]);
    assert.deepEqual(reached, ["127.0.0.2: 200", "10.0.0.1: ADDRESS_BLOCKED"]);
  });
}

// As a bundle, it can be started in every way.
async function outcomesOf(flags: string[], port: number, hosts: string[]): Promise<string[]> {
  const folder = await Deno.makeTempDir({ prefix: "kenri-unguarded-" });
  try {
    const bundle = `${folder}/unguarded.js`;
    const source = fileURLToPath(new URL("unguarded.ts", import.meta.url));
    const flagsOfBundle = ["--quiet", "--platform", "deno", "--output", bundle];
    await outputOf(["bundle", ...flagsOfBundle, source]);
    const outcomes: string[] = JSON.parse(await outputOf([...flags, bundle, `${port}`, ...hosts]));
    return outcomes.map((outcome, at) => `${hosts[at]}: ${outcome}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function outputOf(args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
  return new TextDecoder().decode(stdout);
}

Deno.test("H-106: all that is not public is denied but what the settings allow, to the last address", () => {
  const number = (address: string) =>
    address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const countIn = (hosts: string[]) =>
    hosts.filter((host) => !host.includes(":")).reduce((sum, host) => {
      const [address = "", prefix = "32"] = host.split("/");
      assert.equal(number(address) % 2 ** (32 - Number(prefix)), 0, host);
      return sum + 2 ** (32 - Number(prefix));
    }, 0);
  const all = countIn(deniedHosts([]));
  assert.equal(countIn(deniedHosts(rangesOf("127.0.0.1"))), all - 1);
  assert.equal(countIn(deniedHosts(rangesOf("127.0.0.1", "10.1.0.0/16", "8.8.8.8"))), all - 65_537);
  assert.equal(countIn(deniedHosts(rangesOf("0.0.0.0/0"))), 0);
});
