import type { Mutant } from "./mutant.ts";

export const mutants: Mutant[] = [
  {
    file: "client/attempts.ts",
    property: "the pauses between attempts stop growing at five seconds",
    replace: "Math.min(longestPauseMs, firstPauseMs * 2 ** (nextAttempt - 1))",
    by: "Math.max(longestPauseMs, firstPauseMs * 2 ** (nextAttempt - 1))",
    tests: ["client/attempts_test.ts"],
  },
];
