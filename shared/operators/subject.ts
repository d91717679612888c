import type { TimelineBy } from "./timeline.ts";

// What a waiting row or a dead letter is about: an order is one of several of its event, and a
// reservation may have no event yet.

const kinds = [
  { by: "order_id", title: "Order" },
  { by: "event_id", title: "Event" },
  { by: "reservation_id", title: "Reservation" },
] as const satisfies { by: TimelineBy; title: string }[];

export type SubjectIds = { [By in (typeof kinds)[number]["by"]]?: string | null | undefined };

export interface Subject {
  by: TimelineBy;
  title: string;
  id: string;
}

export function subjectOf(ids: SubjectIds): Subject | undefined {
  for (const kind of kinds) {
    const id = ids[kind.by];
    if (id) return { ...kind, id };
  }
  return undefined;
}

/** The title of a column with the subjects of these rows. */
export function subjectTitle(rows: SubjectIds[]): string {
  const known = rows.map(subjectOf).find((subject) => subject !== undefined);
  return known?.title ?? "Event";
}
