// Where a service says that its stream has all events so far: see shared/outbox/watermark.ts.
export function watermarkSubject(subject: string): string {
  return `${subject}.watermark`;
}

// Events that are younger may be on their way, so a watermark is about this much earlier.
export const watermarkLagMs = 1_000;
