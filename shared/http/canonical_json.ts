// JSON that is the same text for the same value, whatever the order of its keys.

export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => isObject(part) ? sorted(part) : part);
}

function sorted(object: object): object {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => a < b ? -1 : 1));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const mostDepth = 64;

// How deep a value is nested. It stops when it is deep enough to be refused, so that no value can
// exhaust the stack.
export function depthOf(value: unknown, depth = 0): number {
  if (typeof value !== "object" || value === null || depth > mostDepth) return depth;
  return Object.values(value).reduce(
    (most, part) => Math.max(most, depthOf(part, depth + 1)),
    depth + 1,
  );
}
