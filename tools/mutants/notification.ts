import type { Mutant } from "./mutant.ts";

export const mutants: Mutant[] = [];
