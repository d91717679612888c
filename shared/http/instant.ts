import { z } from "@hono/zod-openapi";

// A time that a caller names: RFC 3339 with an offset, so that it is one instant for everybody.
// PostgreSQL counts microseconds; finer digits are cut off.

const written = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(?:Z|([+-])(\d\d):(\d\d))$/i;

// The same instant always gives the same text, in UTC with microseconds. Undefined if the text is not
// a time that exists.
export function instantOf(text: string): string | undefined {
  const [, date = "", time = "", fraction = "", sign, hours = "0", minutes = "0"] =
    written.exec(text) ?? [];
  const local = new Date(`${date}T${time}Z`);
  // JavaScript takes the 30th of February as the 2nd of March, and 24:00 as the next day.
  if (isNaN(local.getTime()) || !local.toISOString().startsWith(`${date}T${time}`)) {
    return undefined;
  }
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const offset = (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
  const instant = new Date(local.getTime() - offset * 60_000).toISOString();
  // PostgreSQL has no year 0, and JavaScript writes the year 10000 with a sign.
  if (!/^\d{4}-/.test(instant) || instant.startsWith("0000")) return undefined;
  return `${instant.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, "0")}Z`;
}

// Parses the time to its instant.
export function instantSchema(
  description: string,
): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  const error = "must be an existing time with an offset, such as 2026-01-02T03:04:05+09:00";
  return z.string({ error: ({ input }) => input === undefined ? "is required" : error })
    .transform((text, context) => {
      const instant = instantOf(text);
      if (instant === undefined) context.addIssue({ code: "custom", message: error });
      return instant ?? z.NEVER;
    })
    .openapi({ format: "date-time", description });
}
