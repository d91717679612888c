// What a process takes of its machine's memory, as Linux tells it.

export interface Memory {
  mebibytes: number; // resident now
  peakMebibytes: number; // the most that ever was
}

export function memoryOf(pid: number): Memory {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  const kibibytes = (name: string) => Number(new RegExp(`${name}:\\s*(\\d+) kB`).exec(status)?.[1]);
  return { mebibytes: kibibytes("VmRSS") / 1_024, peakMebibytes: kibibytes("VmHWM") / 1_024 };
}
