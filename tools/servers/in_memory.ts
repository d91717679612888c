import { statfsSync } from "node:fs";
import { serversFolder } from "./run_folder.ts";

const memory = "/dev/shm";
const memoryBytes = 4 * 1024 ** 3; // a run of all tests takes less than half of it

/**
 * For tests: they make hundreds of databases of three hundred files each, and a file system that is
 * slow at making files would cost more time than all tests together. So temporary servers keep their
 * data in memory where there is room for it. Tests kill processes and not the machine, so they need
 * no disk.
 */
export function keepServersInMemory(): void {
  if (freeBytesIn(memory) > memoryBytes) Deno.env.set(serversFolder, memory);
}

function freeBytesIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
