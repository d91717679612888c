// A third service that has for operators what the others have, and two queues: parcels and returns.
// It does no work.
import { z } from "@hono/zod-openapi";
import { openAuthenticator } from "../../shared/access/authenticator.ts";
import { addConsole, type ServiceConsole } from "../../shared/console/console.tsx";
import { queueStage } from "../../shared/console/stages.tsx";
import { createApp } from "../../shared/http/app.ts";
import { addRoute } from "../../shared/http/route.ts";
import { countErrors } from "../../shared/operators/dead_letters.ts";
import type { DeadTable } from "../../shared/operators/dead_rows.ts";
import {
  type Erased,
  eraseUserRoute,
  eraseUserWith,
  type Erasure,
  recordErasure,
} from "../../shared/operators/erasure.ts";
import type { Operation } from "../../shared/operators/operations.ts";
import { operationsIn } from "../../shared/operators/operation_log.ts";
import { addDeadLetterRoutes } from "../../shared/operators/routes.ts";
import { deadLayer } from "../../shared/operators/send_back.ts";
import { serviceStatusRoute, statusFields, waitingRows } from "../../shared/operators/status.ts";
import { inOrder, readAsked, timelineRoute } from "../../shared/operators/timeline.ts";
import {
  findRowTimelines,
  stateOf,
  type TimelineRow,
  type TimelineTable,
} from "../../shared/operators/timeline_rows.ts";
import { type Database, openDatabase, query, transaction } from "../../shared/postgres/postgres.ts";
import { sql } from "../../shared/postgres/sql.ts";
import type { NamedPage } from "../../shared/process/setting_kinds.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import {
  byDueTime,
  type ClaimOrder,
  leasedTable,
  oldestFirst,
} from "../../shared/queue/leased_table.ts";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase } from "../support/databases.ts";
import { collectingLog } from "../support/relays.ts";
import { looks, parcelQueue, type ParcelStatus, returnQueue, timelineBy } from "./parcel_looks.ts";

const tableOf = (name: string, order: ClaimOrder) =>
  leasedTable({
    ...{ name, id: "parcel_id", attempts: "parcel_attempts", working: "PACKING", order },
    content: sql`user_id`,
    done: { status: "PACKED", set: sql`packed_at = now()`, values: {} },
  });
const parcels = tableOf("parcels", oldestFirst("ordered_at"));

const ddlOf = (table: string) =>
  `create table ${table} (
     parcel_id uuid primary key default gen_random_uuid(), event_id uuid not null, user_id text,
     aggregate_key text not null default '', status text not null default 'PENDING',
     attempt_count int not null default 0, next_retry_at timestamptz,
     ordered_at timestamptz not null default now(), due_at timestamptz not null default now(),
     packed_at timestamptz, locked_by text,
     locked_at timestamptz, lease_until timestamptz, last_error text,
     unfinished boolean generated always as (status in ('PENDING', 'PACKING')) stored)`;

const waiting = waitingRows(parcels, { event_id: z.uuid() });
const returns = waitingRows(tableOf("returns", byDueTime("due_at", "ordered_at")), {
  event_id: z.uuid(),
});

const statusSchema = z.object({
  ...waiting.fields,
  returns: z.object(returns.fields),
  errors: statusFields.errors,
  weighed: z.int(),
});

const deadParcels: DeadTable = {
  layer: "parcel",
  name: "parcels",
  id: "parcel_id",
  idType: "uuid",
  isDead: "status = 'FAILED'",
  error: "last_error",
  since: "ordered_at",
  columns: "event_id, attempt_count as attempts, user_id as payload",
};

const timelines: TimelineTable = {
  table: parcels,
  columns: "user_id",
  begun: { step: "ORDERED", at: "ordered_at" },
  done: { statuses: ["PACKED"], at: "packed_at" },
  attemptsHaveSequence: false,
};

const parcelConsole: ServiceConsole<ParcelStatus, never> = {
  service: "parcel",
  looks,
  counters: {},
  stages: (status) => [queueStage(parcelQueue, status), queueStage(returnQueue, status)],
  meaningOfSteps: { ORDERED: "Somebody ordered a parcel." },
  toneOfStates: { PACKED: "good" },
  more: [],
};

export interface ParcelService extends AsyncDisposable {
  url: string;
  ownerUrl: string;
}

export async function startParcels(peers: NamedPage[] = []): Promise<ParcelService> {
  const { ownerUrl, drop } = await freshDatabase("notification"); // it has a log of operations
  for (const table of ["parcels", "returns"]) await ask(ownerUrl, ddlOf(table));
  await ask(
    ownerUrl,
    `create table parcel_attempts (attempt_id bigserial, parcel_id uuid, outcome text, worker text,
       begun_at timestamptz, ended_at timestamptz default now(), error text, operation_id uuid)`,
  );
  await ask(ownerUrl, "alter table operations drop constraint operations_layer_known");
  const database = openDatabase(ownerUrl, "parcel");
  const app = parcelApp(database, peers);
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, (request) => app.fetch(request));
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    ownerUrl,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await database.end();
      await drop();
    },
  };
}

function parcelApp(database: Database, peers: NamedPage[]) {
  const authenticator = openAuthenticator;
  const app = createApp({
    title: "Parcel",
    checks: {},
    authenticator,
    log: collectingLog().log,
  });
  const layers = [
    deadLayer(database, deadParcels, new Wakeup(), (ids, by) => sendBack(database, ids, by)),
  ];
  addRoute(app, serviceStatusRoute("parcel", "parcels", statusSchema), async () =>
    Response.json({
      ...await waiting.read(database),
      returns: await returns.read(database),
      errors: await countErrors(layers),
      weighed: 1,
    }));
  addRoute(app, timelineRoute("parcel", timelineBy), async ({ req }) => {
    const asked = readAsked(req.query(), timelineBy);
    const ids = asked.by === "event_id" ? asked.value : await eventsOf(database, asked.value);
    return Response.json({ events: await findTimelines(database, ids) });
  });
  addDeadLetterRoutes(app, "parcel", operationsIn(database), layers);
  addRoute(app, eraseUserRoute("parcel"), eraseUserWith((erasure) => erase(database, erasure)));
  addConsole(app, authenticator, parcelConsole, peers);
  return app;
}

async function eventsOf(database: Database, userId: string): Promise<string[]> {
  const statement = "select event_id from parcels where user_id = $1";
  const rows = await query<{ event_id: string }>(database, statement, [userId]);
  return rows.map(({ event_id }) => event_id);
}

async function findTimelines(database: Database, ids: string[]) {
  const found = await findRowTimelines<TimelineRow & { user_id: string }>(database, timelines, ids);
  return [...found].map(([event_id, { row, steps }]) => ({
    ...{ event_id, user_id: row.user_id, stock_keeping_unit: null, version: null, type: "Parcel" },
    ...{ trace_id: null, ...stateOf(row, "NOT_ORDERED"), steps: inOrder(steps) },
  }));
}

async function sendBack(database: Database, ids: string[], { id, who, reason }: Operation) {
  const rows = await query<{ id: string }>(
    database,
    `with moved as (
       update parcels set status = 'PENDING' where parcel_id = any($1::uuid[]) returning parcel_id
     ), logged as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $2, 'SEND_BACK', 'parcel', $3, $4,
         jsonb_agg(jsonb_build_object('parcel_id', parcel_id))
       from moved
       having count(*) > 0
     )
     select parcel_id as id from moved`,
    [ids, id, who, reason],
  );
  return rows.map(({ id }) => id);
}

function erase(database: Database, erasure: Erasure): Promise<Erased> {
  return transaction(database, async (tx) => {
    const rows = await query<{ unfinished: boolean }>(
      tx,
      "select unfinished from parcels where user_id = $1",
      [erasure.userId],
    );
    const waiting = rows.filter(({ unfinished }) => unfinished).length;
    if (waiting > 0) return { waiting, rows: {} };
    if (!erasure.dryRun) {
      await recordErasure(tx, erasure, { parcels: rows.length });
      const statement = "update parcels set user_id = $2 where user_id = $1";
      await query(tx, statement, [erasure.userId, erasure.pseudonym]);
    }
    return { waiting, rows: { parcels: rows.length } };
  });
}
