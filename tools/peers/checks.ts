// What a stream must have after a measurement.

export interface Message {
  id: string;
  key: string;
  version: number;
}

/** Fails unless each event is there exactly once. Returns how many stand behind a later one of their key. */
export function countLate(messages: Message[], expected: ReadonlySet<string>): number {
  const found = new Set<string>();
  const versions = new Map<string, number>();
  let late = 0;
  for (const { id, key, version } of messages) {
    if (!expected.has(id)) throw new Error(`The stream has the unknown event ${id}`);
    if (found.has(id)) throw new Error(`The stream has the event ${id} twice`);
    found.add(id);
    const before = versions.get(key) ?? 0;
    if (version < before) late++;
    versions.set(key, Math.max(version, before));
  }
  if (found.size < expected.size) {
    throw new Error(`The stream has ${found.size} of ${expected.size} events`);
  }
  return late;
}
