import { z } from "@hono/zod-openapi";
import type { Reply } from "@kenri/shared/redis/redis_link.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { countEnded } from "./metrics.ts";

// A ticket as the scripts return it, and as it is answered.

export const statuses = ["QUEUED", "MATCHED", "CANCELLED", "EXPIRED", "INVALID"] as const;

const matchedSchema = z.object({
  match_id: z.uuid(),
  peer_user_ids: z.array(z.string()),
  session: z.record(z.string(), z.unknown()).openapi({
    description: "Where to play; empty, because no game server is connected yet",
  }),
  matched_at: z.iso.datetime(),
});

const fields = {
  ticket_id: z.string(),
  status: z.enum(statuses),
  expires_at: z.iso.datetime(),
};

export const joinedSchema = z.object(fields).openapi("Joined");
export const ticketSchema = z.object({ ...fields, matched: matchedSchema.nullable() })
  .openapi("Ticket");

export type Ticket = z.output<typeof ticketSchema>;

const example = {
  ticket_id: "casual-0199a1c2-3f4e-7a5b-8c6d-7e8f9a0b1c2d",
  status: "QUEUED",
  expires_at: "2026-01-02T03:05:05.678Z",
} as const;

export const joinedExample = example;
export const ticketExample: Ticket = {
  ...example,
  status: "MATCHED",
  matched: {
    match_id: "3b1c9a54-7d2e-8f60-a1b2-c3d4e5f60718",
    peer_user_ids: ["01998c1d-5a6b-7c8d-9e0f-1a2b3c4d5e6f"],
    session: {},
    matched_at: "2026-01-02T03:04:06.789Z",
  },
};

export function newTicketId(mode: string): string {
  return `${mode}-${uuidv7()}`;
}

// Undefined if it can't be the id of a ticket in one of these modes.
export function modeOfTicket(id: string, modes: readonly string[]): string | undefined {
  const [, mode] = /^(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.exec(id) ?? [];
  return mode !== undefined && modes.includes(mode) ? mode : undefined;
}

type Shown = [string, string, string, Ticket["status"], number, string, string, string];

export interface Found {
  ticket: Ticket;
  announced: boolean; // an event was written that is to be published
}

// What `shown` of scripts/ticket.lua returns.
export function foundIn(reply: Reply): Found {
  const [, ended, ticket_id, status, expires, match_id, peers, matched] = reply as Shown;
  if (isEnd(ended)) countEnded(ended, 1);
  return {
    ticket: {
      ticket_id,
      status,
      expires_at: timeOf(expires),
      matched: status === "MATCHED"
        ? {
          match_id,
          peer_user_ids: JSON.parse(peers),
          session: {},
          matched_at: timeOf(Number(matched)),
        }
        : null,
    },
    announced: ended === "expired" || ended === "invalid",
  };
}

const isEnd = (ended: string): ended is "expired" | "invalid" | "cancelled" => ended !== "";

const timeOf = (ms: number) => new Date(ms).toISOString();
