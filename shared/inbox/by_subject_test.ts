import assert from "node:assert/strict";
import { UnreadableMessage } from "@kenri/proto/unreadable.ts";
import { bySubject } from "./by_subject.ts";

const message = (subject: string) => ({
  subject,
  data: new Uint8Array([7]),
  header: () => undefined,
});

Deno.test("each message is decoded by the decoder of its subject", () => {
  const decode = bySubject<string>(
    ["a.events", ({ data }) => `a ${data}`],
    ["b.events", ({ data }) => `b ${data}`],
  );
  assert.deepEqual(["a.events", "b.events"].map((subject) => decode(message(subject))), [
    "a 7",
    "b 7",
  ]);
});

Deno.test("a message under an unknown subject is not unreadable, because a newer replica may know it", () => {
  const decode = bySubject(["a.events", () => "a"]);
  for (const subject of ["c.events", "__proto__", "a"]) {
    assert.throws(() => decode(message(subject)), (error) => !(error instanceof UnreadableMessage));
  }
});
