import { z } from "zod";
import { environmentName } from "./program.ts";

// Settings are read once, at start.

export const environment = (name: string): string | undefined => Deno.env.get(name);

export class SettingsError extends Error {
  override readonly name = "SettingsError";

  readonly problems: string[];

  constructor(problems: string[]) {
    super(`Settings can't be used: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

// Reports all wrong settings at once, each by its environment name.
export function parseSettings<Schema extends z.ZodObject>(
  schema: Schema,
  read: (name: string) => string | undefined,
): z.output<Schema> {
  const given = Object.keys(schema.shape).map((key) => [key, read(environmentName(key))] as const);
  const parsed = schema.safeParse(
    Object.fromEntries(given.filter(([, value]) => value !== undefined)),
  );
  if (parsed.success) return parsed.data;
  // Only the first problem of each setting: a blank value is also not a URL.
  const problems = new Map<string, string>();
  for (const { path, message } of parsed.error.issues) {
    const name = environmentName(path.join("."));
    if (!problems.has(name)) problems.set(name, `${name} ${message}`);
  }
  throw new SettingsError([...problems.values()]);
}

export type Prefixed<Prefix extends string, Values> = {
  [Key in keyof Values as `${Prefix}.${Key & string}`]: Values[Key];
};

// The same settings under the name of a service or a worker.
export function prefixed<Prefix extends string, Shape extends z.ZodRawShape>(
  prefix: Prefix,
  shape: Shape,
): Prefixed<Prefix, Shape> {
  const entries = Object.entries(shape).map(([key, schema]) => [`${prefix}.${key}`, schema]);
  return Object.fromEntries(entries) as Prefixed<Prefix, Shape>;
}

// The values of the settings that begin with the prefix, under their names without it.
export function unprefixed<Prefix extends string, Values extends object>(
  prefix: Prefix,
  settings: Prefixed<Prefix, Values>,
): Values {
  const start = `${prefix}.`;
  const entries = Object.entries(settings)
    .filter(([key]) => key.startsWith(start))
    .map(([key, value]) => [key.slice(start.length), value]);
  return Object.fromEntries(entries) as Values;
}

// Compares two settings, also while others are wrong.
export function notAbove(
  low: string,
  high: string,
): z.core.$ZodCheck<Record<string, unknown>> {
  return z.refine<Record<string, unknown>>((value) => !isAbove(value[low], value[high]), {
    path: [low],
    message: `must not be above ${environmentName(high)}`,
    when: () => true,
  });
}

// A value that could not be parsed is still text, and is not compared.
function isAbove(low: unknown, high: unknown): boolean {
  return typeof low === "number" && typeof high === "number" && low > high;
}

// Two settings that must have different values.
export function notSame(
  one: string,
  other: string,
): z.core.$ZodCheck<Record<string, unknown>> {
  return z.refine<Record<string, unknown>>(
    (value) => value[one] === undefined || value[one] !== value[other],
    { path: [one], message: `must not be the same as ${environmentName(other)}`, when: () => true },
  );
}
