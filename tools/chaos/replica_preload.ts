// Loaded into each service of a run, before the service itself. It adds the process id and the true time
// to each line of the log, reports when the process stalled, and lets the clock jump: an hour
// ahead with SIGUSR2, back with SIGWINCH. (SIGUSR1 would open Deno's debugger.)
import { watchStalls } from "./stalls.ts";

const TrueDate = Date;
const hourMs = 3_600_000;
let aheadMs = 0;

const shifted = () => TrueDate.now() + aheadMs;
globalThis.Date = new Proxy(TrueDate, {
  get: (date, name) => name === "now" ? shifted : Reflect.get(date, name),
  construct: (date, args, asked) =>
    Reflect.construct(date, args.length ? args : [shifted()], asked),
  apply: () => new TrueDate(shifted()).toString(),
});
Deno.addSignalListener("SIGUSR2", () => aheadMs += hourMs);
Deno.addSignalListener("SIGWINCH", () => aheadMs -= hourMs);

const write = Deno.stdout.writeSync.bind(Deno.stdout);
const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
Deno.stdout.writeSync = (bytes) => {
  const line = decoder.decode(bytes);
  const mark = `{"pid":${Deno.pid},"at":${TrueDate.now()},`;
  write(encoder.encode(line.startsWith("{") ? mark + line.slice(1) : line));
  return bytes.length;
};

// A process without processor time loses its leases, whatever the reason.
watchStalls(({ from, until }) => {
  const line = `{"message":"Stood still","from":${from},"until":${until}}\n`;
  Deno.stdout.writeSync(encoder.encode(line));
}, TrueDate.now);
