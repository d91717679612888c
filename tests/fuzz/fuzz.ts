// How fuzz tests run: KENRI_FUZZ_RUNS replaces the number of runs of each property, KENRI_FUZZ_SEED
// repeats a run that failed.
import fc from "fast-check";

const runsGiven = Deno.env.get("KENRI_FUZZ_RUNS");
const seed = Deno.env.get("KENRI_FUZZ_SEED") ?? `${Math.floor(Math.random() * 2 ** 31)}`;

/** Longer, because many runs leave much work behind. */
export const longMs = 300_000;

/** Does not shrink counterexamples, because a server remembers earlier requests. */
export async function fuzz(
  property: fc.IProperty<unknown> | fc.IAsyncProperty<unknown>,
  runs: number,
): Promise<void> {
  const options = { numRuns: Number(runsGiven ?? runs), seed: Number(seed), endOnFailure: true };
  try {
    await fc.assert(property as fc.IAsyncProperty<unknown>, options);
  } catch (error) {
    const { message, cause } = error as Error;
    // A counterexample contains the tokens of its requests.
    throw new Error(message.replaceAll(/kenri_[0-9a-f]{64}/g, "kenri_…"), { cause });
  }
}

/** Text that is often valid and often nearly valid. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom("ann", "", " ", "\0", "a\0b", "\ud800", "a\udc00", "\u0085", "\u202e", "%ff"),
  fc.constantFrom("' or '1'='1", "../..", "__proto__", "{}", "null", "$1", "🎫".repeat(255)),
  fc.constantFrom("x".repeat(255), "x".repeat(256), "x".repeat(20_000)),
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 300 }),
);

/** Times as people and machines write them, some of which PostgreSQL can't store. */
export const anyTime: fc.Arbitrary<string> = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  {
    weight: 4,
    arbitrary: fc.tuple(
      fc.constantFrom("2026-01-02", "2026-02-30", "0000-01-01", "0001-01-01", "9999-12-31"),
      fc.constantFrom("T00:00:00", "T23:59:59", "T12:00", "T23:59:60", "T24:00:00"),
      fc.oneof(
        fc.constantFrom("", ".5"),
        fc.integer({ min: 1, max: 400 }).map((length) => `.${"1".repeat(length)}`),
      ),
      fc.constantFrom("Z", "+00:00", "-12:00", "+15:59", "+16:00", "+23:59", "-23:59", "z", ""),
    ).map((parts) => parts.join("")),
  },
  anyText,
);

const most = Number.MAX_SAFE_INTEGER;

/** Numbers near the bounds of amounts, and what no amount can be. */
export const anyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, 1, -1, 0.5, 1.5, most - 1, most, most + 1, -most, 2 ** 63, 1e300, 1e-300),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** All that a header can contain: Latin-1 without control characters. */
export const headerText: fc.Arbitrary<string> = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 300,
});

/** The bytes with a few of them changed, removed, inserted or doubled. */
export function mutated(bytes: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  const edit = fc.record({
    at: fc.nat(10_000),
    length: fc.nat(8),
    put: fc.uint8Array({ maxLength: 8 }),
  });
  return fc.tuple(bytes, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([bytes, edits]) =>
    edits.reduce((before, { at, length, put }) => {
      const from = at % (before.length + 1);
      return new Uint8Array([...before.slice(0, from), ...put, ...before.slice(from + length)]);
    }, bytes)
  );
}
