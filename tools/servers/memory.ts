// The memory that a process uses, as Linux reports it.

export interface Memory {
  mebibytes: number; // resident now
  peakMebibytes: number; // the highest so far
}

export function memoryOf(pid: number): Memory {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  const kibibytes = (name: string) => Number(new RegExp(`${name}:\\s*(\\d+) kB`).exec(status)?.[1]);
  return { mebibytes: kibibytes("VmRSS") / 1_024, peakMebibytes: kibibytes("VmHWM") / 1_024 };
}
