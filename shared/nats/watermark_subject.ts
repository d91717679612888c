// Where a service says that its stream has all events so far: see shared/outbox/watermark.ts.
export function watermarkSubject(subject: string): string {
  return `${subject}.watermark`;
}
