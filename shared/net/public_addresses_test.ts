import assert from "node:assert/strict";
import fc from "fast-check";
import {
  customerOf,
  deniedHosts,
  firstAddress,
  isIn,
  isPublic,
  lastAddress,
  readRange,
} from "./public_addresses.ts";

const octet = fc.integer({ min: 0, max: 255 });
const v4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join("."));

Deno.test("an address is public exactly if no denied range contains it", () => {
  const denied = deniedHosts([]).flatMap((host) => readRange(host.replaceAll(/[[\]]/g, "")) ?? []);
  fc.assert(fc.property(v4, (address) => isPublic(address) !== isIn(denied, address)));
  for (const host of deniedHosts([])) {
    for (const end of [firstAddress(host), lastAddress(host)]) {
      assert.equal(isPublic(end.replaceAll(/[[\]]/g, "")), false, end);
    }
  }
});

Deno.test("an exception is cut out of the denial, and nothing else is", () => {
  fc.assert(fc.property(v4, v4, (allowed, other) => {
    const exceptions = [readRange(allowed)].flatMap((range) => range ?? []);
    const denied = deniedHosts(exceptions).flatMap((host) => readRange(host) ?? []);
    assert.equal(isIn(denied, allowed), false);
    if (other !== allowed) assert.equal(isIn(denied, other), !isPublic(other));
  }));
});

Deno.test("addresses and ranges are read in their usual forms, and in no others", () => {
  const good = ["0.0.0.0", "10.0.0.0/8", "255.255.255.255/32", "::", "::1", "fd00::/8", "2000::/3"];
  for (const text of [...good, "1:2:3:4:5:6:7:8", "::ffff:127.0.0.1", "FE80::1", "0.0.0.0/0"]) {
    assert.ok(readRange(text), text);
  }
  const bad = ["", " ", "10.0.0.1/8", "10.0.0.0/33", "::/129", "fd00::1/8", "10.0.0.0/", "/8", "a"];
  const odd = [
    "127.1",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "0x7f.0.0.1",
    "[::1]",
    "1::2::3",
  ];
  for (const text of [...bad, ...odd, "::1%eth0", "localhost", "10.0.0.0/8/8", "10.0.0.0/-1"]) {
    assert.equal(readRange(text), undefined, text);
  }
});

Deno.test("one address has one value, however an IPv6 address is shortened", () => {
  const forms = ["::1", "0:0:0:0:0:0:0:1", "0000::0001", "::0:1", "::0.0.0.1"];
  for (const form of forms) assert.deepEqual(readRange(form), readRange("::1"), form);
  assert.deepEqual([firstAddress("10.0.0.0/8"), lastAddress("10.0.0.0/8")], [
    "10.0.0.0",
    "10.255.255.255",
  ]);
  assert.equal(lastAddress("[0:0:0:0:0:0:0:1]"), "[0:0:0:0:0:0:0:1]");
});

Deno.test("a customer has one IPv4 address, or all IPv6 addresses with the same first half", () => {
  const same = ["2001:db8:1:2::", "2001:DB8:1:2::1", "2001:0db8:1:2:ffff:ffff:ffff:ffff"];
  assert.equal(new Set(same.map(customerOf)).size, 1);
  const others = ["2001:db8:1:3::1", "2001:db8::1", "10.0.0.1", "10.0.0.2", "::1", "unknown", ""];
  assert.equal(new Set([...same, ...others].map(customerOf)).size, 1 + others.length);
  assert.deepEqual(["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:a00:1"].map(customerOf), [
    ...["10.0.0.1", "10.0.0.1", "10.0.0.1"],
  ]);
});
