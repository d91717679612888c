import assert from "node:assert/strict";
import { gauge, metrics } from "./metrics.ts";
import { cached, type Figure } from "./collected.ts";

const waiting = gauge("test_waiting", "for this test");

function asked(answers: (() => Promise<number>)[]) {
  const notes: boolean[] = [];
  let times = 0;
  const lookUp = cached(async (): Promise<Figure[]> => {
    const answer = answers[times++];
    return [{ gauge: waiting, value: await (answer as () => Promise<number>)() }];
  }, (answered) => notes.push(answered));
  return { lookUp, notes, times: () => times };
}

const shown = async () => /^test_waiting (.*)$/m.exec(await metrics.metrics())?.[1];

Deno.test("several scrapes at the same time or soon after share one answer", async () => {
  const { lookUp, notes, times } = asked([() => Promise.resolve(3)]);
  await Promise.all([lookUp(), lookUp()]);
  await lookUp();
  assert.deepEqual([await shown(), times(), notes], ["3", 1, [true]]);
});

Deno.test("a figure that can't be read is left out", async () => {
  const notes: boolean[] = [];
  waiting.remove({});
  const away = () => Promise.reject(new Error("away"));
  await cached(away, (answered) => notes.push(answered))();
  assert.deepEqual([await shown(), notes], [undefined, [false]]);
});

Deno.test("a scrape does not wait for a slow answer, and a later one shows it", async () => {
  const late = Promise.withResolvers<number>();
  const { lookUp, notes } = asked([() => late.promise]);
  await lookUp();
  assert.deepEqual([await shown(), notes], [undefined, [false]]);
  late.resolve(7);
  await lookUp();
  assert.deepEqual([await shown(), notes], ["7", [false, true]]);
});
