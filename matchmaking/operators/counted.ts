import { metrics } from "@kenri/shared/telemetry/metrics.ts";

// What this replica has done since it started, from its metrics.

export interface Counted {
  matches: number;
  expired: number;
  cancelled: number;
  invalid: number;
  mean_seconds_to_match: number | null;
  mean_pairing_delay_seconds: number | null;
}

export async function counted(): Promise<Counted> {
  const results = await valuesOf("mm_match_total");
  const of = (result: string) =>
    results.find(({ labels }) => labels["result"] === result)?.value ?? 0;
  return {
    matches: of("matched"),
    expired: of("expired"),
    cancelled: of("cancelled"),
    invalid: of("invalid"),
    mean_seconds_to_match: await meanOf("mm_time_to_match_seconds"),
    mean_pairing_delay_seconds: await meanOf("mm_pairing_delay_seconds"),
  };
}

interface Value {
  metricName?: string;
  labels: Record<string, unknown>;
  value: number;
}

async function valuesOf(name: string): Promise<Value[]> {
  const found = await metrics.getSingleMetric(name)?.get();
  return (found?.values ?? []) as Value[];
}

// Of a histogram.
async function meanOf(name: string): Promise<number | null> {
  const values = await valuesOf(name);
  const of = (part: string) =>
    values.find(({ metricName }) => metricName === `${name}_${part}`)?.value ?? 0;
  return of("count") === 0 ? null : of("sum") / of("count");
}
