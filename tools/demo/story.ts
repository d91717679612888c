// What happens in a small shop: people buy and return things, press a button twice, retry after a lost
// connection, and ask for what is not possible. The story knows the right answer to each request.

import type { EntitlementChange } from "../../client/answers.ts";

export type Action = "grants" | "revokes";

export type Kind = "change" | "double tap" | "repeat" | "refusal" | "key of another";

export interface Step {
  kind: Kind;
  action: Action;
  key: string;
  fields: EntitlementChange;
  expected: { status: number; code?: string; version?: number };
}

export interface Change {
  user: string;
  item: string;
  type: "EntitlementGranted" | "EntitlementRevoked";
  version: number;
}

interface Right {
  status: "ACTIVE" | "REVOKED";
  version: number;
}

export const people = ["ann", "bob", "chie", "dara", "emil", "fumi", "gus", "hana"];
const items = ["concert-ticket", "e-book", "film-pass", "game-skin", "news-plus"];
const reasons = {
  grants: ["purchase", "gift", "subscription"],
  revokes: ["refund", "chargeback", "expired"],
};

// Out of 100 requests; the rest are changes.
const kinds: [Kind, number][] = [["refusal", 12], ["repeat", 10], ["double tap", 8], [
  "key of another",
  4,
]];

export class Story {
  readonly users: string[];
  readonly changes: Change[] = []; // each must arrive
  readonly #run: string;
  readonly #rights = new Map<string, Right>();
  readonly #sent: Step[] = []; // their answers are stored under their keys
  #count = 0;

  // The name of the run is part of every user and every key, so that runs don't affect each other.
  constructor(run: string, users: string[]) {
    this.#run = run;
    this.users = users;
  }

  next(): Step {
    const kind = this.#pickKind();
    const step = kind === "repeat"
      ? { ...pick(this.#sent), kind }
      : kind === "key of another"
      ? this.#keyOfAnother()
      : this.#newRequest(kind);
    if (kind !== "repeat" && kind !== "key of another") this.#sent.push(step);
    return step;
  }

  #pickKind(): Kind {
    let dice = Math.random() * 100;
    for (const [kind, share] of kinds) {
      dice -= share;
      if (dice < 0) return this.#sent.length === 0 ? "change" : kind;
    }
    return "change";
  }

  #newRequest(kind: Kind): Step {
    const user = pick(this.users);
    const item = pick(items);
    const right = this.#rights.get(`${user} ${item}`);
    const owned = right?.status === "ACTIVE";
    // Sometimes a refund overtakes its purchase, and no entitlement exists yet.
    const early = right === undefined && Math.random() < 0.05;
    const change: Action = owned || early ? "revokes" : "grants";
    const same: Action | undefined = right === undefined ? undefined : owned ? "grants" : "revokes";
    const refused = kind === "refusal" && same !== undefined;
    const action: Action = refused ? same : change;
    const version = (right?.version ?? 0) + 1;
    if (!refused) this.#take(user, item, action, version);
    const step = { action, key: this.#nextKey(), fields: this.#fields(user, item, action) };
    return refused
      ? { ...step, kind, expected: { status: 409, code: "ENTITLEMENT_STATE_CONFLICT" } }
      : { ...step, kind: kind === "refusal" ? "change" : kind, expected: { status: 200, version } };
  }

  #take(user: string, item: string, action: Action, version: number): void {
    const granted = action === "grants";
    this.#rights.set(`${user} ${item}`, { status: granted ? "ACTIVE" : "REVOKED", version });
    const type = granted ? "EntitlementGranted" : "EntitlementRevoked";
    this.changes.push({ user, item, type, version });
  }

  #keyOfAnother(): Step {
    const { action, key, fields } = pick(this.#sent);
    return {
      kind: "key of another",
      action,
      key,
      fields: { ...fields, purchase_id: `${fields.purchase_id}-other` },
      expected: { status: 409, code: "IDEMPOTENCY_KEY_CONFLICT" },
    };
  }

  #nextKey(): string {
    return `demo-${this.#run}-${++this.#count}`;
  }

  #fields(user: string, item: string, action: Action): EntitlementChange {
    return {
      user_id: user,
      stock_keeping_unit: item,
      reason: pick(reasons[action]),
      purchase_id: `order-${this.#run}-${this.#count}`,
    };
  }
}

function pick<Item>(from: readonly Item[]): Item {
  return from[Math.floor(Math.random() * from.length)] as Item;
}
