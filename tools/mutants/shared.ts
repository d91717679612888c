import type { Mutant } from "./mutant.ts";

export const mutants: Mutant[] = [
  {
    file: "shared/send_back.ts",
    property: "a page of dead letters is sent back, and what comes after it stays",
    replace: "await table.sendBack(rows, operation)",
    by: "await table.sendBack(found, operation)",
    tests: ["tests/send_back_test.ts"],
  },
];
