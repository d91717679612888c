import assert from "node:assert/strict";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { ratesOf } from "./rate.ts";

const limits = { loginPerMinute: 10, userPerSecond: 50, userBurst: 100 };

function admitted(rate: (name: string) => void, names: string[]): number {
  return names.filter((name) => {
    try {
      rate(name);
      return true;
    } catch (error) {
      assert.ok(error instanceof ApiError);
      assert.equal(error.code, "TOO_MANY_REQUESTS");
      assert.match(error.headers["Retry-After"] ?? "", /^[1-9]\d*$/);
      assert.doesNotMatch(error.message, /10\.0\.0|user-/, "the message names nobody");
      return false;
    }
  }).length;
}

const times = (count: number, name: string) => Array.from({ length: count }, () => name);

Deno.test("an address may log in ten times a minute, and does not take the logins of others", () => {
  const { login } = ratesOf(limits);
  assert.equal(admitted(login, times(50, "10.0.0.1")), 10);
  assert.equal(admitted(login, times(50, "10.0.0.2")), 10);
});

Deno.test("a customer gets no more logins by many addresses of one IPv6 network", () => {
  const { login } = ratesOf(limits);
  const addresses = Array.from({ length: 50 }, (_, i) => `2001:db8:1:2::${i.toString(16)}`);
  assert.equal(admitted(login, addresses), 10);
  assert.equal(admitted(login, ["2001:db8:1:3::1"]), 1);
});

Deno.test("a user may send a burst of requests, and logins do not count as such", () => {
  const { user, login } = ratesOf({ ...limits, userPerSecond: 1 });
  assert.equal(admitted(login, times(10, "user-1")), 10);
  assert.equal(admitted(user, times(150, "user-1")), 100);
  assert.equal(admitted(user, ["user-2"]), 1);
});
