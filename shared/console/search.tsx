import type { JSX } from "hono/jsx/jsx-runtime";
import { type SubjectIds, subjectOf } from "../operators/subject.ts";
import type { TimelineBy } from "../operators/timeline.ts";
import { queryOf } from "./ask.ts";

// The form that finds events, and the link to one.

export const timelinePath = "/console/timeline";

export interface SearchBy {
  by: TimelineBy;
  title: string;
}

const everySearch: SearchBy[] = [
  { by: "user_id", title: "user id" },
  { by: "event_id", title: "event id" },
  { by: "idempotency_key", title: "idempotency key" },
  { by: "reservation_id", title: "reservation id" },
  { by: "order_id", title: "order id" },
];

export function searchesBy(allowed: readonly TimelineBy[]): SearchBy[] {
  return everySearch.filter(({ by }) => allowed.includes(by));
}

interface SearchParts {
  searchBy: SearchBy[];
  by?: string;
  value?: string;
}

export function Search({ searchBy, by = "user_id", value = "" }: SearchParts): JSX.Element {
  return (
    <form class="search" method="get" action={timelinePath} role="search">
      <div>
        <label for="by">Find by</label>
        <select id="by" name="by">
          {searchBy.map((one) => (
            <option value={one.by} selected={one.by === by}>{one.title}</option>
          ))}
        </select>
      </div>
      <SearchField id="q" label="Value" value={value} maxlength={4000} />
      <button type="submit">Find</button>
    </form>
  );
}

interface FieldParts {
  id: string;
  label: string;
  value: string;
  maxlength: number;
}

// A field for an id, which the browser must not correct.
export function SearchField({ id, label, value, maxlength }: FieldParts): JSX.Element {
  return (
    <div class="wide">
      <label for={id}>{label}</label>
      <input
        id={id}
        name={id}
        value={value}
        required
        maxlength={maxlength}
        autocapitalize="off"
        autocomplete="off"
        spellcheck={false}
      />
    </div>
  );
}

// Leads to the timeline of an event, of one of its orders, or of a reservation that has no event.
export function TimelineLink({ of: ids }: { of: SubjectIds }): JSX.Element {
  const subject = subjectOf(ids);
  if (!subject) return <span class="muted">–</span>;
  const { by, id } = subject;
  return (
    <a href={`${timelinePath}${queryOf({ by, q: id })}`}>
      <code>{id}</code>
    </a>
  );
}

export function EventLink({ id }: { id: string | null }): JSX.Element {
  return <TimelineLink of={{ event_id: id }} />;
}
