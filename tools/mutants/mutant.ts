/** A small, realistic bug and the tests that must notice it. */
export interface Mutant {
  /** From the root of the project: "shared/queue/worker.ts". */
  file: string;
  /** The property that the code has and that the mutant breaks. */
  property: string;
  /** The file contains this exactly once. */
  replace: string;
  by: string;
  /** Each of these files must fail; the quickest ones that notice it. */
  tests: string[];
}

/** Undefined if the file does not contain the text to replace exactly once. */
export function mutated(text: string, { replace, by }: Mutant): string | undefined {
  return text.split(replace).length === 2 ? text.replace(replace, () => by) : undefined;
}

/** The first part of the path: "shared". */
export function folderOf({ file }: Mutant): string {
  return file.slice(0, file.indexOf("/"));
}
