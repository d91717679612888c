import assert from "node:assert/strict";
import { makeDisk } from "./disk.ts";

Deno.test("a full disk refuses writes until it is emptied, and keeps its files", async () => {
  await using disk = await makeDisk("test");
  if (!disk.canBeFull) return; // mounting is not allowed here
  await Deno.writeFile(`${disk.path}/before`, new Uint8Array(1_000_000));
  await disk.fill();
  const more = new Uint8Array(1_000_000);
  await assert.rejects(Deno.writeFile(`${disk.path}/during`, more), /No space left/);
  await disk.empty();
  await Deno.writeFile(`${disk.path}/after`, more);
  assert.equal((await Deno.stat(`${disk.path}/before`)).size, 1_000_000);
});

Deno.test("a disk leaves nothing behind", async () => {
  const disk = await makeDisk("test");
  await Deno.writeTextFile(`${disk.path}/file`, "text");
  await disk[Symbol.asyncDispose]();
  await assert.rejects(Deno.stat(disk.path), Deno.errors.NotFound);
});
