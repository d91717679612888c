// A histogram for code that every request and every event passes. The one of prom-client makes a
// text of the labels and looks it up for each value. Here the caller keeps the series, and a value
// costs a few additions. The registry reads it like any other metric.

export class Histogram {
  readonly name: string;
  readonly #help: string;
  readonly #labelNames: string[];
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(name: string, help: string, labelNames: string[], bounds: readonly number[]) {
    this.name = name;
    this.#help = help;
    this.#labelNames = labelNames;
    this.#bounds = bounds;
  }

  // Takes the values in the order of the names. The same labels get the same series.
  labels(...values: string[]): Series {
    const key = JSON.stringify(values);
    let series = this.#series.get(key);
    if (!series) {
      const labels = this.#labelNames.map((name, i) => [name, values[i] ?? ""]);
      series = new Series(Object.fromEntries(labels), this.#bounds);
      this.#series.set(key, series);
    }
    return series;
  }

  get(): unknown {
    const values = [...this.#series.values()].flatMap((series) => series.values(this.name));
    return { name: this.name, help: this.#help, type: "histogram", aggregator: "sum", values };
  }
}

export class Series {
  readonly #labels: Record<string, string>;
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array; // one for each bucket, not cumulative; the last is above all bounds
  #sum = 0;

  constructor(labels: Record<string, string>, bounds: readonly number[]) {
    this.#labels = labels;
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += value;
  }

  values(name: string): unknown[] {
    let count = 0;
    const buckets = [...this.#bounds, "+Inf"].map((le, i) => ({
      metricName: `${name}_bucket`,
      labels: { ...this.#labels, le },
      value: count += this.#counts[i] as number,
    }));
    const labels = this.#labels;
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}
