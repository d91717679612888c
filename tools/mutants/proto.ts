import type { Mutant } from "./mutant.ts";

const generated = "proto/gen/entitlement/v1/entitlement_event_pb.ts";

export const mutants: Mutant[] = [
  {
    file: generated,
    property: "a grant keeps its number on the wire",
    replace: "  GRANTED: 1,",
    by: "  GRANTED: 3,",
    tests: ["proto/entitlement/v1/entitlement_event_test.ts"],
  },
  {
    file: generated,
    property: "a revoke keeps its number on the wire",
    replace: "  REVOKED: 2,",
    by: "  REVOKED: 3,",
    tests: ["proto/entitlement/v1/entitlement_event_test.ts"],
  },
];
