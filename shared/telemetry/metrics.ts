import { Counter, Gauge, type Metric, Registry } from "prom-client";
import { Histogram } from "./histogram.ts";

// The figures of this process. What each means stands in docs/metrics.md, in the same words.

export const metrics = new Registry();

export function counter<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Counter<Label> {
  return new Counter({ name, help, labelNames, registers: [metrics] });
}

export function gauge<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Gauge<Label> {
  return new Gauge({ name, help, labelNames, registers: [metrics] });
}

export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  labelNames: string[] = [],
): Histogram {
  const made = new Histogram(name, help, labelNames, bounds);
  metrics.registerMetric(made as unknown as Metric); // of which the registry uses name and get
  return made;
}

// Of one step: a statement, a request, a send.
export const shortSeconds = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
// Of the way of an event, which may wait for a retry or for the end of an outage.
export const delaySeconds = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600],
];

// A figure that comes into being with its first 1 is no increase to Prometheus.
export function fromZero(counter: Counter.Internal): Counter.Internal {
  counter.inc(0);
  return counter;
}

// One for each value of a label.
export function countersBy<Value extends string>(
  values: readonly Value[],
  counterOf: (value: Value) => Counter.Internal,
): Record<Value, Counter.Internal> {
  const entries = values.map((value) => [value, fromZero(counterOf(value))]);
  return Object.fromEntries(entries);
}
