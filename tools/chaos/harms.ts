// Damages sound evidence, and expects the checker to notice it.
import assert from "node:assert/strict";
import { check } from "./checker.ts";
import type { Evidence } from "./evidence.ts";
import { soundEvidence } from "./sound_evidence.ts";

export type Harm = [harm: string, found: RegExp, plant: (evidence: Evidence) => void];

export function testHarms(harms: Harm[]): void {
  for (const [harm, found, plant] of harms) {
    Deno.test(`the checker notices that ${harm}`, () => {
      const evidence = soundEvidence();
      plant(evidence);
      const broken = check(evidence).filter(({ violations }) => violations > 0);
      assert.ok(
        broken.some(({ statement }) => found.test(statement)),
        `${found} in ${broken.map((i) => i.statement)}`,
      );
    });
  }
}
