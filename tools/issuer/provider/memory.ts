// What the provider stores: sessions, codes, grants. It outlives the provider, which is made anew when
// its keys rotate.

type Stored = Record<string, unknown> & { grantId?: string; uid?: string };

interface Row {
  stored: Stored;
  endsAt: number;
}

const rows = new Map<string, Row>();
const maxRows = 20_000; // the oldest are forgotten

export class Memory {
  readonly #model: string;

  constructor(model: string) {
    this.#model = model;
  }

  upsert(id: string, stored: Stored, expiresIn?: number): Promise<void> {
    const key = this.#key(id);
    rows.delete(key); // so that it becomes the newest
    rows.set(key, { stored, endsAt: Date.now() + (expiresIn ?? 86_400) * 1_000 });
    const [oldest] = rows.keys();
    if (rows.size > maxRows && oldest !== undefined) rows.delete(oldest);
    return Promise.resolve();
  }

  find(id: string): Promise<Stored | undefined> {
    const row = rows.get(this.#key(id));
    return Promise.resolve(row && row.endsAt > Date.now() ? row.stored : undefined);
  }

  findByUid(uid: string): Promise<Stored | undefined> {
    const isIt = ([key, { stored }]: [string, Row]) =>
      key.startsWith(this.#key("")) && stored.uid === uid;
    return Promise.resolve([...rows].find(isIt)?.[1].stored);
  }

  findByUserCode(): Promise<undefined> {
    return Promise.resolve(undefined); // no device logs in here
  }

  consume(id: string): Promise<void> {
    const row = rows.get(this.#key(id));
    if (row) row.stored["consumed"] = Math.floor(Date.now() / 1_000);
    return Promise.resolve();
  }

  destroy(id: string): Promise<void> {
    rows.delete(this.#key(id));
    return Promise.resolve();
  }

  revokeByGrantId(grantId: string): Promise<void> {
    for (const [key, { stored }] of rows) if (stored.grantId === grantId) rows.delete(key);
    return Promise.resolve();
  }

  #key(id: string): string {
    return `${this.#model}:${id}`;
  }
}
