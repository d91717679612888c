// A folder whose disk can be filled up: a small file system in memory, the size of which is changed.
// Where mounting is not allowed it is a plain folder, and faults that need more are left out.
import { statfs } from "node:fs/promises";

export interface Disk extends AsyncDisposable {
  readonly path: string;
  readonly canBeFull: boolean;
  /** From now on writes fail. */
  fill(): Promise<void>;
  empty(): Promise<void>;
}

/** An upper bound; only what is used takes memory. */
const size = "8g";

/** Unmounts when its input ends, which happens however the run ends. */
const sweeper = `read -r _; umount --lazy "$1" 2>/dev/null; rm -rf "$1"`;

export async function makeDisk(name: string): Promise<Disk> {
  const path = await Deno.makeTempDir({ prefix: `kenri-chaos-${name}-` });
  await Deno.chmod(path, 0o755);
  const canBeFull = await mount("-t", "tmpfs", "-o", `size=${size},mode=755`, "kenri-chaos", path);
  const sweeping = new Deno.Command("sh", {
    args: ["-c", sweeper, "sweeper", path],
    stdin: "piped",
    stdout: "null",
    stderr: "null",
    detached: true,
  }).spawn();
  sweeping.unref();

  async function fill(): Promise<void> {
    // A file system can't get smaller than its contents, which may grow in the meantime.
    for (let tries = 0; tries < 50; tries++) {
      const { blocks, bfree, bsize } = await statfs(path);
      const used = (blocks - bfree) * bsize;
      if (await mount("-o", `remount,size=${used + 16_384}`, path)) return;
    }
    throw new Error(`The disk at "${path}" can't be filled`);
  }

  return {
    path,
    canBeFull,
    fill,
    empty: async () => void await mount("-o", `remount,size=${size}`, path),
    [Symbol.asyncDispose]: async () => {
      sweeping.ref();
      await sweeping.stdin.close();
      await sweeping.status;
    },
  };
}

async function mount(...args: string[]): Promise<boolean> {
  const command = new Deno.Command("mount", { args, stdout: "null", stderr: "null" });
  return await command.output().then(({ success }) => success, () => false);
}
