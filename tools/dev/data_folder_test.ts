import assert from "node:assert/strict";
import { takeOwnFolder } from "./data_folder.ts";

const user = { uid: 65_534, gid: 65_534 };

Deno.test({
  name: "a folder that another user may have planted is not used for data",
  ignore: Deno.uid() !== 0, // only root gives folders to others
  fn: async () => {
    const open = await Deno.makeTempDir({ prefix: "kenri-planted-" });
    const path = `${open}/data`;
    const plant: (() => Promise<void>)[] = [
      () => Deno.symlink("/var/tmp", path),
      () => Deno.writeTextFile(path, "", { mode: 0o600 }),
      async () => {
        await Deno.mkdir(path, { mode: 0o700 });
        await Deno.chown(path, 1_234, 1_234);
      },
      async () => {
        await Deno.mkdir(path);
        await Deno.chown(path, user.uid, user.gid);
        await Deno.chmod(path, 0o750);
      },
    ];
    for (const planted of plant) {
      await planted();
      await assert.rejects(takeOwnFolder(path, user), /another user may have made it/);
      await Deno.remove(path, { recursive: true });
    }
    await takeOwnFolder(path, user);
    await Deno.chown(path, user.uid, user.gid);
    await takeOwnFolder(path, user); // as the next start finds it
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o700);
    await Deno.remove(open, { recursive: true });
  },
});
