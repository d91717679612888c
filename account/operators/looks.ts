import type { Looks, QueueLooks } from "@kenri/shared/operators/looks.ts";
import { ago } from "@kenri/shared/ops/text.ts";
import { accounts, endSessions, resume, roles, suspend } from "./commands.ts";
import type { AccountsStatus } from "./status.ts";

// What operators see of this service.

export const timelineBy = ["event_id", "user_id"] as const;

export const outboxQueue: QueueLooks<AccountsStatus> = {
  title: "Outbox",
  noun: "account event",
  until: "to be published",
  command: "accounts late",
  layers: ["account"],
  lateSeconds: 5, // from then on a gateway asks for each request, see gateway.session.staleness
  waitsForNats: true,
  of: (status) => status,
};

export const looks: Looks<AccountsStatus> = {
  status: {
    queues: [outboxQueue],
    figures: ({ active_admins, ended_sessions, last_published_at }) => ({
      "active ADMINs": active_admins,
      "sessions that ended early": ended_sessions,
      "last account event published": ago(last_published_at),
    }),
  },
  timeline: { title: "account", by: timelineBy },
  deadLetters: { account: "Events of accounts that could not be published." },
  erasesUsers: "first",
  logsOperations: true,
  commands: {
    "accounts": accounts,
    "accounts suspend": suspend,
    "accounts resume": resume,
    "accounts roles": roles,
    "accounts end-sessions": endSessions,
  },
};
