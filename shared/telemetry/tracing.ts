import {
  type Context,
  context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { reasonOf } from "../process/reason.ts";

// Spans with Deno's own OpenTelemetry. A trace follows its event: each step is the child of the one
// before, by the traceparent in the row or the message. A statement for a batch is a span of its
// own, linked to the traces of all items.
//
// Everything checks `tracing` first, so nothing is allocated unless OTEL_DENO is true.

const tracer = trace.getTracer("kenri");
export const tracing: boolean = isSpanContextValid(tracer.startSpan("probe").spanContext());

export const w3cTraceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

function spanContextOf(traceparent: string | null | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = w3cTraceparent.exec(traceparent ?? "") ?? [];
  if (!traceId || !spanId || !flags) return undefined;
  return { traceId, spanId, traceFlags: parseInt(flags, 16) & 1, isRemote: true };
}

function below(parent: SpanContext | undefined): Context {
  return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
}

// The traceparent of the current request.
export function activeTraceparent(): string | undefined {
  const span = tracing ? trace.getActiveSpan() : undefined;
  return span && traceparentOf(span);
}

// Deno has already begun a span for the request. Its name is only the method, and its path may
// contain a user id, so both are replaced.
export function nameRequest(method: string, route: string): void {
  const span = tracing ? trace.getActiveSpan() : undefined;
  span?.updateName(`${method} ${route}`);
  span?.setAttributes({
    "http.route": route,
    "url.full": route,
    "url.path": route,
    "url.query": "",
  });
}

const kinds = {
  producer: SpanKind.PRODUCER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};

export interface Step {
  name: string;
  kind: keyof typeof kinds;
}

// One step of one event. `work` gets the traceparent for the next step.
export async function inSpan<Outcome extends { kind: string }>(
  { name, kind }: Step,
  parent: string | null,
  work: (traceparent: string) => Promise<Outcome>,
): Promise<Outcome> {
  const around = below(spanContextOf(parent));
  const options = { kind: kinds[kind] };
  const span = tracer.startSpan(name, options, around);
  try {
    const outcome = await context.with(
      trace.setSpan(around, span),
      () => work(traceparentOf(span)),
    );
    span.setAttribute("outcome", outcome.kind);
    if ("error" in outcome) fail(span, outcome.error);
    return outcome;
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

// One statement for many items. Each item gets a step in its own trace, and that step's
// traceparent; all these steps and the span of the statement are linked.
export async function stepTogether<Item extends { traceparent?: string | null }, Result>(
  name: string,
  items: Item[],
  work: (items: Item[]) => Promise<Result>,
): Promise<Result> {
  if (!tracing) return await work(items);
  const parents = items.map(({ traceparent }) => spanContextOf(traceparent));
  return await inStatement(name, parents, async (statement) => {
    const links = [{ context: statement }];
    const kind = SpanKind.INTERNAL;
    const spans = parents.map((parent) => tracer.startSpan(name, { kind, links }, below(parent)));
    try {
      return await work(
        items.map((item, i) => ({ ...item, traceparent: traceparentOf(spans[i] as Span) })),
      );
    } catch (error) {
      for (const span of spans) fail(span, error);
      throw error;
    } finally {
      for (const span of spans) span.end();
    }
  });
}

// One statement for many items, without a step in each of their traces.
export async function linked<Result>(
  name: string,
  traceparents: () => (string | null)[],
  work: () => Promise<Result>,
): Promise<Result> {
  if (!tracing) return await work();
  return await inStatement(name, traceparents().map(spanContextOf), work);
}

async function inStatement<Result>(
  name: string,
  served: (SpanContext | undefined)[],
  work: (statement: SpanContext) => Promise<Result>,
): Promise<Result> {
  const links = served.flatMap((context): Link[] => context ? [{ context }] : []);
  const attributes = { "kenri.batch.size": served.length };
  const span = tracer.startSpan(
    `${name} together`,
    { root: true, links, attributes },
    ROOT_CONTEXT,
  );
  try {
    return await context.with(
      trace.setSpan(ROOT_CONTEXT, span),
      () => work(span.spanContext()),
    );
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function fail(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message: reasonOf(error) });
}
