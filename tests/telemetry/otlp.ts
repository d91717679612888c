// A receiver of traces: OTLP over HTTP, with JSON.
import { keep } from "../../tools/servers/evidence.ts";
import type { Settings } from "../../tools/servers/service_process.ts";

export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  links: { traceId: string; spanId: string }[];
  attributes: Record<string, unknown>;
  failed: boolean;
}

export interface Receiver extends AsyncDisposable {
  spans: ReceivedSpan[];
  settings(service: string): Settings;
}

interface Payload {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: RawSpan[] }[];
  }[];
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

interface RawSpan extends Omit<ReceivedSpan, "service" | "attributes" | "failed"> {
  attributes: Attribute[];
  status?: { code?: number };
}

export function receiveTraces(): Receiver {
  const spans: ReceivedSpan[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (req) => {
    const text = await req.text();
    keep("traces", text);
    if (new URL(req.url).pathname === "/v1/traces") spans.push(...spansIn(JSON.parse(text)));
    return Response.json({});
  });
  return {
    spans,
    settings: (service) => ({
      OTEL_DENO: "true",
      OTEL_SERVICE_NAME: service,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    }),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function spansIn({ resourceSpans }: Payload): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(plain(resource.attributes)["service.name"]);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        service,
        attributes: plain(span.attributes),
        failed: span.status?.code === 2,
      }))
    );
  });
}

function plain(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
