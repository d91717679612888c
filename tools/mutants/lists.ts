import { mutants as client } from "./client.ts";
import { mutants as entitlement } from "./entitlement.ts";
import { mutants as migrations } from "./migrations.ts";
import type { Mutant } from "./mutant.ts";
import { mutants as notification } from "./notification.ts";
import { mutants as ops } from "./ops.ts";
import { mutants as proto } from "./proto.ts";
import { mutants as relay } from "./relay.ts";
import { mutants as shared } from "./shared.ts";

/** In the order of the tree; `relay` is the second half of entitlement. */
export const allMutants: Mutant[] = [
  ...entitlement,
  ...relay,
  ...notification,
  ...shared,
  ...proto,
  ...client,
  ...migrations,
  ...ops,
];
