import { Counter, Gauge, type Metric, Registry } from "prom-client";
import { Histogram } from "./histogram.ts";

// The metrics of this process. docs/metrics.md is generated from their descriptions.

export const metrics = new Registry();

export interface Description {
  name: string;
  type: "counter" | "gauge" | "histogram";
  labels: readonly string[];
  bounds: readonly number[];
  help: string;
}

export const descriptions: Description[] = [];

export function counter<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Counter<Label> {
  descriptions.push({ name, type: "counter", labels: labelNames, bounds: [], help });
  return new Counter({ name, help, labelNames, registers: [metrics] });
}

export function gauge<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Gauge<Label> {
  descriptions.push({ name, type: "gauge", labels: labelNames, bounds: [], help });
  return new Gauge({ name, help, labelNames, registers: [metrics] });
}

export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  labelNames: string[] = [],
): Histogram {
  descriptions.push({ name, type: "histogram", labels: labelNames, bounds, help });
  const made = new Histogram(name, help, labelNames, bounds);
  metrics.registerMetric(made as unknown as Metric); // the registry uses only its name and get()
  return made;
}

// For the duration of one step: a statement, a request, a send.
export const shortSeconds = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
// For the way of an event, which may wait for a retry or for the end of an outage.
export const delaySeconds = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600],
];

// Prometheus sees no increase in a counter whose first value is already 1, so each begins with 0.
export function fromZero(counter: Counter.Internal): Counter.Internal {
  counter.inc(0);
  return counter;
}

// One counter for each value of a label.
export function countersBy<Value extends string>(
  values: readonly Value[],
  counterOf: (value: Value) => Counter.Internal,
): Record<Value, Counter.Internal> {
  const entries = values.map((value) => [value, fromZero(counterOf(value))]);
  return Object.fromEntries(entries);
}
