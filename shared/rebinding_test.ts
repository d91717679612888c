import assert from "node:assert/strict";
import { ApiError } from "./errors.ts";
import { refuseStrangeName } from "./rebinding.ts";

Deno.test("this machine is asked by an address or by a name of its own, and not by one of the internet", () => {
  const own = [
    "127.0.0.1",
    "127.0.0.1:8080",
    "localhost",
    "LOCALHOST:1",
    "a.localhost",
    "localhost.",
  ];
  for (const host of [...own, "[::1]:8080", "[::ffff:127.0.0.1]", "kenri", "", "my-machine:80"]) {
    refuseStrangeName(`http://${host}/console`);
    refuseStrangeName(`http://${host}`);
  }
  const strange = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "evil.", "a.b"];
  for (
    const host of [...strange, "localhost.evil.example", "1.2.3.4.5", "evil-localhost.example"]
  ) {
    assert.throws(
      () => refuseStrangeName(`http://${host}/v1/users/ann@127.0.0.1/entitlements`),
      (error) => error instanceof ApiError && error.status === 403,
      host,
    );
  }
});
