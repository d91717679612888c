// Statements as templates. A hole is a value and becomes $1, $2 and so on, so a value can never
// become text. A hole that is itself a statement is spliced in with its own values, so no part of a
// statement has to know how many values the other parts have.

export class Sql {
  readonly #strings: readonly string[]; // one more than the values between them
  readonly values: readonly unknown[];
  #text: string | undefined;

  constructor(strings: readonly string[], values: readonly unknown[]) {
    this.#strings = strings;
    this.values = values;
  }

  get text(): string {
    return this.#text ??= this.#strings.reduce((text, next, i) => `${text}$${i}${next}`);
  }

  // The strings and values of both, where the last string of this one and the first string of the
  // next one become one.
  static join(parts: readonly (string | Sql | { value: unknown })[]): Sql {
    const strings = [""];
    const values: unknown[] = [];
    const write = (text: string) => void (strings[strings.length - 1] += text);
    for (const part of parts) {
      if (typeof part === "string") write(part);
      else if (part instanceof Sql) {
        write(part.#strings[0] ?? "");
        strings.push(...part.#strings.slice(1));
        values.push(...part.values);
      } else {
        values.push(part.value);
        strings.push("");
      }
    }
    return new Sql(strings, values);
  }
}

export function sql(strings: TemplateStringsArray, ...holes: unknown[]): Sql {
  return Sql.join(strings.flatMap((text, i) => {
    if (i === 0) return [text];
    const hole = holes[i - 1];
    return [hole instanceof Sql ? hole : { value: hole }, text];
  }));
}

// A select that fails with a message unless another part of the statement, which may be one that
// writes, has so many rows. PostgreSQL has no function for it, but it can't make a number of words.
export function failsUnless(rows: number, from: Sql, message: string): Sql {
  return sql`select (case when count(*) = ${rows} then '0' else ${message}::text end)::int from ${from}`;
}

export const nothing: Sql = sql``;

// The name of a table, a column or another part of a statement.
export function name(identifier: string): Sql {
  return new Sql([checked(identifier, /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/)], []);
}

// A name as a text of SQL. Only for words that can't contain a quote.
export function literal(word: string): Sql {
  return new Sql([`'${checked(word, /^[A-Za-z_][A-Za-z0-9_]*$/)}'`], []);
}

export function list(parts: readonly Sql[], separator = ", "): Sql {
  return Sql.join(parts.flatMap((part, i) => i === 0 ? [part] : [separator, part]));
}

// An array literal for PostgreSQL. The items must not need quotes.
export function listOf(items: (string | number | null)[]): string {
  return `{${items.map((item) => item ?? "null").join()}}`;
}

function checked(word: string, pattern: RegExp): string {
  if (!pattern.test(word)) throw new Error(`"${word}" can't be a part of a statement`);
  return word;
}
