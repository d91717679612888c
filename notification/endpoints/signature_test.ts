import assert from "node:assert/strict";
import { signedHeaders } from "./signature.ts";

// The vector of the reference implementations of Standard Webhooks.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const timestamp = 1614265330;
const body = '{"test": 2432232314}';
const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

Deno.test("a webhook is signed as Standard Webhooks defines it", () => {
  assert.deepEqual(signedHeaders([secret], id, timestamp, body), {
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
    "webhook-signature": signature,
  });
});

Deno.test("there is one signature for each secret, in their order", () => {
  const other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
  const headers = signedHeaders([other, secret], id, timestamp, body);
  const [first, second, ...more] = headers["webhook-signature"]?.split(" ") ?? [];
  assert.match(first ?? "", /^v1,[A-Za-z0-9+/]{43}=$/);
  assert.notEqual(first, signature);
  assert.equal(second, signature);
  assert.deepEqual(more, []);
});
