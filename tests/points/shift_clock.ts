// Tests load this before a service: see shifted_clock.ts.
const { ms, when } = JSON.parse(Deno.env.get("KENRI_TEST_CLOCK_SHIFT_MS") ?? "");
let shiftMs = when === "at once" ? ms : 0;
Deno.addSignalListener("SIGUSR2", () => {
  shiftMs = ms;
});

const RealDate = Date;
const now = () => RealDate.now() + shiftMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) => name === "now" ? now : Reflect.get(target, name, receiver),
});
