import type { Looks, QueueLooks } from "@kenri/shared/operators/looks.ts";
import { ageOf, ago, count } from "@kenri/shared/ops/text.ts";
import { auditVerify } from "../audit/verify_command.ts";
import { reconcile, unreceived } from "../reconciliation/commands.ts";
import { points, pointsNext, reservationFigures } from "./points/commands.ts";
import { pointsVerify } from "./points/verify_command.ts";
import { replay } from "./replay_command.ts";
import type { OutboxStatus } from "./status.ts";

// What operators see of this service.

export const timelineBy = ["event_id", "user_id", "idempotency_key", "reservation_id"] as const;

const checkedTooLongAgoMs = 3 * 3_600_000;

export const outboxQueue: QueueLooks<OutboxStatus> = {
  title: "Outbox",
  noun: "event",
  until: "to be published",
  where: "in the outbox",
  command: "outbox",
  layers: ["outbox"],
  lateSeconds: 5, // until an event is in the stream, the objective of docs/slo.md
  waitsForNats: true,
  of: (status) => status,
};

export const reservationQueue: QueueLooks<OutboxStatus> = {
  title: "Reservations",
  noun: "due reservation",
  until: "to be carried out",
  command: "points late",
  layers: ["reservation"],
  lateSeconds: 1, // after the time of the reservation, the objective of docs/slo.md
  waitsForNats: false,
  of: (status) => status.reservations,
};

export const looks: Looks<OutboxStatus> = {
  status: {
    queues: [outboxQueue, reservationQueue],
    figures: ({ reservations, last_published_at, proven_until, unreceived }) => ({
      ...reservationFigures(reservations),
      "last event published": ago(last_published_at),
      "all events received until": ago(proven_until),
      "events not received": unreceived,
    }),
    problems: ({ unreceived, checked_at }) => [
      ...(unreceived > 0 ? [`${count(unreceived, "event")} not received: ops unreceived`] : []),
      ...(Date.now() - Date.parse(checked_at) > checkedTooLongAgoMs
        ? [`last reconciliation ${ageOf(checked_at)} ago: ops reconcile --dry-run`]
        : []),
    ],
  },
  timeline: { title: "outbox", absent: "unknown", by: timelineBy },
  deadLetters: {
    outbox: "Events that could not be published.",
    reservation: "Reservations that could not be carried out.",
  },
  erasesUsers: true,
  logsOperations: true,
  commands: {
    "reconcile": reconcile,
    "unreceived": unreceived,
    "replay": replay,
    "audit verify": auditVerify,
    "points": points,
    "points next": pointsNext,
    "points verify": pointsVerify,
  },
};
