/** A small realistic bug, and the tests that must notice it. */
export interface Mutant {
  /** Seen from the root of the project: "entitlement/list_entitlements.ts". */
  file: string;
  /** The sentence that the code keeps, and that the mutant breaks. */
  property: string;
  /** Stands exactly once in the file. */
  replace: string;
  by: string;
  /** Each of these files must go red. The quickest that notices it: "tests/list_test.ts". */
  tests: string[];
}

/** Undefined when the text to replace does not stand exactly once in the file. */
export function mutated(text: string, { replace, by }: Mutant): string | undefined {
  return text.split(replace).length === 2 ? text.replace(replace, () => by) : undefined;
}

/** The first part of the path: "entitlement". */
export function folderOf({ file }: Mutant): string {
  return file.slice(0, file.indexOf("/"));
}
