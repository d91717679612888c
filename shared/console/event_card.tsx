import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { EventTimeline, Step } from "../operators/timeline.ts";
import { queryOf } from "./ask.ts";
import { Facts, type Site, Status, When } from "./layout.tsx";
import { timelinePath } from "./search.tsx";
import { age, shortKey } from "./text.ts";

// One event with all its steps in this service.

interface EventCardParts {
  site: Site;
  event: EventTimeline;
  meaningOf: Record<string, string>; // of the steps, in a sentence
  children: Child;
}

export function EventCard({ site, event, meaningOf, children }: EventCardParts): JSX.Element {
  const { event_id, reservation_id, order_id, user_id, steps, next_retry_at } = event;
  const { idempotency_key: key } = event;
  return (
    <article class="card">
      <h2>
        {event.type ?? "Event"} <Status site={site} status={event.status} />
      </h2>
      <Facts
        facts={[
          event_id !== null && ["event", <code>{event_id}</code>],
          !!reservation_id && ["reservation", <code>{reservation_id}</code>],
          !!order_id && ["order", <code>{order_id}</code>],
          ["user", user_id === null ? "–" : <UserLink id={user_id} />],
          ["item", `${event.stock_keeping_unit ?? "–"}, version ${event.version ?? "–"}`],
          ["trace", <code>{event.trace_id ?? "–"}</code>],
          !!key && ["idempotency key", <code>{shortKey(key)}</code>],
          ["failed attempts", event.attempt_count],
          next_retry_at !== null && ["next attempt", <When at={next_retry_at} />],
        ]}
      />
      <h3>Steps in this service</h3>
      <ol class="steps">
        {steps.map((step, i) => (
          <StepItem step={step} meaning={meaningOf[step.step]} before={steps[i - 1]} />
        ))}
      </ol>
      {children}
    </article>
  );
}

function UserLink({ id }: { id: string }): JSX.Element {
  return <a href={`${timelinePath}${queryOf({ by: "user_id", q: id })}`}>{id}</a>;
}

interface StepParts {
  step: Step;
  meaning: string | undefined;
  before: Step | undefined;
}

function StepItem({ step, meaning, before }: StepParts): JSX.Element {
  const { at, error, worker, stream_seq, who, reason, begun_at, order_id, to } = step;
  const seconds = before && before.at && at
    ? (Date.parse(at) - Date.parse(before.at)) / 1_000
    : null;
  return (
    <li class={error ? "trouble" : undefined}>
      <p>
        <b>{step.step}</b> <When at={at} />
        {to && <span class="word">to {to}</span>}
        {seconds !== null && <span class="muted">+{age(seconds)}</span>}
      </p>
      <p>{meaning}</p>
      {error && <p class="bad error">{error}</p>}
      <p class="muted">
        {[
          stream_seq && `stream sequence ${stream_seq}`,
          worker && `worker ${worker}`,
          begun_at && `started at ${begun_at.slice(11, 23)}`,
          who && `by ${who}`,
          reason && `reason: ${reason}`,
          order_id && `order ${order_id}`,
        ].filter(Boolean).join(" · ")}
      </p>
    </li>
  );
}
