import type { Mutant } from "./mutant.ts";

export const mutants: Mutant[] = [
  {
    file: "entitlement/list_entitlements.ts",
    property: "a list shows the newest change first",
    replace: "order by updated_at desc, stock_keeping_unit",
    by: "order by updated_at, stock_keeping_unit",
    tests: ["tests/api_test.ts"],
  },
];
