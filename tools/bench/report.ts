import type { Sample, Work } from "./work.ts";

export interface Spread {
  median: number;
  min: number;
  max: number;
}

export interface Line {
  name: string;
  unit: string;
  perSecond: Spread;
  limits: {
    name: string;
    what: string;
    perSecond: Spread;
    ratio: Spread; // of the work to the limit, round by round
    target: number;
    met: boolean;
  }[];
  figures: Record<string, Spread & { atMost?: number; met?: boolean }>;
}

/** One round: the work, and each of its limits right before or after it. */
export interface Round {
  work: Sample;
  limits: number[];
}

export function lineOf(name: string, { unit, limits, atMost }: Work, rounds: Round[]): Line {
  const perSecond = spread(rounds.map(({ work }) => work.perSecond));
  const names = Object.keys(rounds[0]?.work.figures ?? {});
  return {
    name,
    unit,
    perSecond,
    limits: limits.map(({ name, what, target }, i) => {
      const figures = rounds.map((round) => round.limits[i] ?? NaN);
      const ratio = spread(rounds.map(({ work }, j) => work.perSecond / (figures[j] ?? NaN)));
      const met = ratio.median >= target;
      return { name, what, perSecond: spread(figures), ratio, target, met };
    }),
    figures: Object.fromEntries(names.map((figure) => {
      const found = spread(rounds.map(({ work }) => work.figures[figure] ?? NaN));
      const bound = atMost[figure];
      const judged = bound === undefined ? {} : { atMost: bound, met: found.median <= bound };
      return [figure, { ...found, ...judged }];
    })),
  };
}

export function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const [low = NaN, high = NaN] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]];
  return { median: (low + high) / 2, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN };
}

export function tableOf(lines: Line[]): string {
  const rows = lines.flatMap(({ name, unit, perSecond, limits, figures }) => [
    [name, unit, rate(perSecond.median), range(perSecond, rate), "", ""],
    ...limits.map((limit) => [
      "",
      `limit: ${limit.name}`,
      rate(limit.perSecond.median),
      range(limit.perSecond, rate),
      `${fine(limit.ratio.median)} × (${range(limit.ratio, fine)})`,
      limit.target > 0 ? `≥ ${limit.target} × ${verdict(limit.met)}` : "",
    ]),
    ...Object.entries(figures).map(([figure, found]) => [
      "",
      figure,
      fine(found.median),
      range(found, fine),
      "",
      found.atMost === undefined ? "" : `≤ ${found.atMost} ${verdict(found.met)}`,
    ]),
  ]);
  return aligned([["work", "figure", "median", "spread", "work ÷ limit", "target"], ...rows]);
}

export function aligned(rows: string[][]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd())
    .join("\n");
}

export const rate = (value: number): string => Math.round(value).toLocaleString("en");
export const fine = (value: number): string => value.toFixed(2);
export const range = ({ min, max }: Spread, show: (value: number) => string): string =>
  `${show(min)} to ${show(max)}`;
const verdict = (met: boolean | undefined) => met ? "met" : "MISSED";
