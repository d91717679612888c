import assert from "node:assert/strict";
import { ApiError } from "../http/errors.ts";
import { requireLoopbackName } from "./rebinding.ts";

Deno.test("a request without credentials must name the service by a loopback name or address", () => {
  const own = ["127.0.0.1", "127.0.0.1:8080", "127.1.2.3", "localhost", "LOCALHOST:1"];
  for (const host of [...own, "a.localhost", "localhost.", "[::1]", "[::1]:8080"]) {
    requireLoopbackName(`http://${host}/console`);
    requireLoopbackName(`http://${host}`);
  }
  const strange = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "evil.", "a.b"];
  const single = ["intranet", "kenri", "my-machine:80", "", "127", "2130706433", "0x7f000001"];
  const others = ["0.0.0.0", "10.0.0.1", "1.2.3.4.5", "[::]", "[fe80::1]", "[::ffff:10.0.0.1]"];
  for (
    const host of [
      ...[...strange, ...single, ...others],
      ...["localhost.evil.example", "evil-localhost.example", "evil-localhost", "localhost.."],
    ]
  ) {
    assert.throws(
      () => requireLoopbackName(`http://${host}/v1/users/ann@127.0.0.1/entitlements`),
      (error) => error instanceof ApiError && error.status === 403,
      host,
    );
  }
});
