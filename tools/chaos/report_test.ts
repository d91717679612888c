import assert from "node:assert/strict";
import { check } from "./checker.ts";
import type { Evidence } from "./evidence.ts";
import { isGood, type Report, reportOf, sumOf } from "./report.ts";
import { first, soundEvidence } from "./sound_evidence.ts";

Deno.test("a sound run reports nothing lost, doubled, out of order or violated", () => {
  const figures = figuresOf(soundEvidence());
  assert.equal(figures.acknowledged, 5);
  assert.equal(figures["sends repeated"], 1);
  for (const name of ["lost", "doubled", "out of order", "violations"] as const) {
    assert.equal(figures[name], 0, name);
  }
});

Deno.test("lost, doubled and reordered changes are counted", () => {
  const evidence = soundEvidence();
  const { notifications } = evidence.tables;
  notifications.push({ ...first(notifications), notification_id: "other" });
  evidence.tables.audit.pop();
  evidence.log.sends.forEach((send) => send.line = -send.line);
  const { lost, doubled, "out of order": outOfOrder, violations } = figuresOf(evidence);
  assert.deepEqual([lost, doubled], [1, 1]);
  assert.ok(outOfOrder >= 2, `${outOfOrder} out of order`);
  assert.ok(violations > outOfOrder);
});

Deno.test("figures of several runs are added up, with the longest time to heal", () => {
  const [one, other] = [figuresOf(soundEvidence(), 1), figuresOf(soundEvidence(), 2)];
  other["seconds to heal"] = 7;
  const sum = sumOf([one, other]);
  assert.deepEqual(sum.seeds, [1, 2]);
  assert.equal(sum.acknowledged, 10);
  assert.equal(sum.faults.kill, 2);
  assert.equal(sum.attempts.answered, 30);
  assert.equal(sum["seconds to heal"], 7);
});

Deno.test("a run without acknowledged changes is not a good run", () => {
  assert.ok(isGood(reportFor(soundEvidence())));
  assert.ok(!isGood(reportFor({ ...soundEvidence(), requests: [] })));
});

function figuresOf(evidence: Evidence, seed = 1): Report["figures"] {
  return reportFor(evidence, seed).figures;
}

function reportFor(evidence: Evidence, seed = 1): Report {
  return reportOf({ seed, minutes: 1, evidence, sentAgain: 0 }, check(evidence));
}
