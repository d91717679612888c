// Reads the inboxes of all users repeatedly.

import type { Gift } from "./points.ts";

export type Arrival = Delivery & (ArrivedRight | ArrivedPoints);

interface Delivery {
  id: string;
  status: "SENT" | "FAILED";
  sentAt: number;
  tookMs: number; // from the change to the end of its delivery
}

interface ArrivedRight {
  user: string;
  item: string;
  type: string;
  version: number;
}

interface ArrivedPoints extends Gift {
  balance: number;
}

const maxPages = 1_000; // a story has 10,000 steps at most

export class Inboxes {
  readonly arrivals = new Map<string, Arrival>();
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #users: string[];

  constructor(url: string, headers: Record<string, string>, users: string[]) {
    this.#url = url;
    this.#headers = headers;
    this.#users = users;
  }

  // Returns what has arrived since the last look.
  async look(): Promise<Arrival[]> {
    const found = (await Promise.all(
      this.#users.map((user) => inboxOf(this.#url, this.#headers, user)),
    )).flat().map(toArrival);
    const fresh = found.filter(({ id }) => !this.arrivals.has(id));
    for (const arrival of fresh) this.arrivals.set(arrival.id, arrival);
    return fresh.sort((a, b) => a.sentAt - b.sentAt);
  }
}

/** The notifications of a user that are finished, the newest first. */
export async function inboxOf(
  url: string,
  headers: Record<string, string>,
  user: string,
): Promise<Notification[]> {
  const finished: Notification[] = [];
  let cursor: string | undefined;
  const cursors = new Set<string | undefined>();
  do {
    const query = new URLSearchParams({ limit: "200", ...(cursor ? { cursor } : {}) });
    const response = await fetch(`${url}/debug/notification/inbox/${user}?${query}`, {
      headers,
      signal: AbortSignal.timeout(10_000),
      redirect: "error", // the credential is for nobody else
    });
    const page = await response.json();
    if (!response.ok) throw new Error(`The inbox answers ${response.status}: ${page.message}`);
    finished.push(...page.notifications.filter(isOver));
    cursor = page.next_cursor;
    if (cursors.has(cursor)) throw new Error("The inbox repeats a cursor, so it would never end");
    cursors.add(cursor);
  } while (cursor && cursors.size < maxPages);
  return finished;
}

export interface Notification {
  notification_id: string;
  type: string;
  status: string;
  created_at: string;
  sent_at: string | null;
  payload: Record<string, unknown>;
}

function isOver({ status }: Notification): boolean {
  return status === "SENT" || status === "FAILED";
}

function toArrival(notification: Notification): Arrival {
  const { notification_id, type, status, created_at, sent_at, payload } = notification;
  const sentAt = Date.parse(sent_at ?? created_at);
  const user = String(payload["user_id"]);
  const arrived = payload["unit"] === undefined
    ? {
      user,
      item: String(payload["stock_keeping_unit"]),
      type,
      version: Number(payload["version"]),
    }
    : {
      user,
      amount: Number(payload["point_amount"]),
      reservationId: String(payload["reservation_id"]),
      balance: Number(payload["balance"]),
    };
  return {
    ...arrived,
    id: notification_id,
    status: status as Arrival["status"],
    sentAt,
    tookMs: sentAt - Date.parse(String(payload["occurred_at"])),
  };
}
