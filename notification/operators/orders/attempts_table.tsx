import type { JSX } from "hono/jsx/jsx-runtime";
import { Json, State, Table, When } from "@kenri/shared/console/layout.tsx";
import type { AttemptLook } from "./attempts.ts";
import { OrderLink } from "./links.tsx";

// What was tried, each with its request and what the receiver answered. The body of the request is
// not shown.

export function AttemptsTable(
  { label, attempts }: { label: string; attempts: AttemptLook[] },
): JSX.Element {
  return (
    <Table
      label={label}
      columns={["Ended", "Outcome", "Order", "HTTP", "Reason", "Took", "Request and answer"]}
      rows={attempts.map((attempt) => [
        <When at={attempt.ended_at} />,
        <State tone={toneOf(attempt)} word={attempt.outcome} />,
        <OrderLink id={attempt.order_id} />,
        attempt.http_status ?? "–",
        <span class="error">{attempt.error ?? attempt.reason_code ?? operationOf(attempt)}</span>,
        tookOf(attempt),
        attempt.request_headers === null ? "–" : (
          <details>
            <summary>Show</summary>
            <Json value={attempt.request_headers} label="Headers of the request" />
            <Json value={attempt.response_headers} label="Headers of the answer" />
            <pre tabindex={0} role="region" aria-label="Body of the answer">
              {attempt.response_body ?? ""}
            </pre>
          </details>
        ),
      ])}
      none="Nothing was tried yet."
    />
  );
}

function toneOf({ outcome }: AttemptLook): "good" | "bad" | "warn" | "muted" {
  if (outcome === "SUCCEEDED") return "good";
  if (outcome === "GAVE_UP") return "bad";
  return outcome === "RETRIED" ? "warn" : "muted";
}

function operationOf({ who, reason }: AttemptLook): string {
  return who === null ? "–" : `by ${who}: ${reason}`;
}

// Since the claim, so it includes the wait for a place at the destination.
function tookOf({ begun_at, ended_at }: AttemptLook): string {
  if (begun_at === null) return "–";
  return `${Math.max(0, Date.parse(ended_at) - Date.parse(begun_at))} ms`;
}
