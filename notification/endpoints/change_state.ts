import type { Answer, Decision } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import {
  type Endpoint,
  endpointExample,
  endpointPath,
  endpointSchema,
  tag,
  withoutEndpoint,
} from "./endpoint.ts";
import {
  type Found,
  identityOf,
  key,
  lockEndpoints,
  notFound,
  ofOneEndpoint,
  type OnEndpoint,
  onEndpoint,
  stateConflict,
} from "./on_endpoint.ts";

// A caller pauses, resumes or deletes an endpoint. The loop that keeps endpoints parks or releases its
// waiting webhooks afterwards.

type Action = "PAUSE" | "RESUME" | "DELETE";

export interface ChangeState extends OnEndpoint {
  action: Action;
}

interface Effect {
  kind: "state";
  id: string;
  state: "PAUSED" | "ACTIVE" | "DELETED";
  at: string;
}

const routes = {
  PAUSE: {
    path: "pause",
    summary: "Stop sending to an endpoint for now",
    description:
      "Its webhooks are parked until it is resumed, and kept as long as the settings say. One that is " +
      "on its way still arrives. To pause a paused endpoint changes nothing.",
    example: { state: "PAUSED" as const },
  },
  RESUME: {
    path: "resume",
    summary: "Send to an endpoint again",
    description:
      "From each other state it becomes ACTIVE, and what was parked is sent, the oldest first. To " +
      "resume an active endpoint changes nothing.",
    example: { is_draining: true },
  },
};

const refusals = {
  description: "An endpoint in this state can't be paused",
  messages: { ENDPOINT_STATE_CONFLICT: "already DISABLED" },
};

export function stateRoute(action: "PAUSE" | "RESUME"): CommandRoute<undefined, ChangeState> {
  const { path, summary, description, example } = routes[action];
  return {
    route: {
      method: "post",
      path: `/v1/endpoints/{endpoint_id}/${path}`,
      scope: "endpoints:write",
      operationId: `${path}Endpoint`,
      tags: [tag],
      summary,
      description,
      request: { params: endpointPath },
      responses: {
        200: {
          description: "The endpoint after the change",
          content: {
            "application/json": {
              schema: endpointSchema,
              example: { ...endpointExample, ...example },
            },
          },
        },
        ...withoutEndpoint,
      },
    },
    key,
    ...(action === "PAUSE" ? { refusals } : {}),
    toInput: (_, sender, req) => ({ ...onEndpoint(sender, req), action }),
  };
}

export const deleteRoute: CommandRoute<undefined, ChangeState> = {
  route: {
    method: "delete",
    path: "/v1/endpoints/{endpoint_id}",
    scope: "endpoints:write",
    operationId: "deleteEndpoint",
    tags: [tag],
    summary: "Delete an endpoint",
    description:
      "Its webhooks that were not sent end as ABORTED with ENDPOINT_DELETED. One that is on its way " +
      "may still arrive. A repeated request gets 404.",
    request: { params: endpointPath },
    responses: { 204: { description: "It is deleted" }, ...withoutEndpoint },
  },
  toInput: (_, sender, req) => ({ ...onEndpoint(sender, req), action: "DELETE" }),
};

export const stateCommand: Command<ChangeState, Found, Effect> = {
  ...ofOneEndpoint,
  name: "endpoint_states",
  identityOf: (change) => identityOf(change, [`${change.action} ENDPOINT`, change.id]),
  find: lockEndpoints,
  decide,
  apply: { state: updateStates },
};

function decide({ action }: ChangeState, { now, found }: Found): Decision<Effect> {
  if (!found) return { answer: notFound, effects: [] };
  const change = (state: Effect["state"], answer: Answer): Decision<Effect> => ({
    answer,
    effects: [{ kind: "state", id: found.endpoint_id, state, at: now }],
  });
  if (action === "DELETE") return change("DELETED", deleted);
  const state = action === "PAUSE" ? "PAUSED" : "ACTIVE";
  if (found.state === state) return { answer: shown(found), effects: [] };
  if (action === "PAUSE" && (found.state === "DISABLED" || found.state === "GONE")) {
    return { answer: stateConflict(`already ${found.state}`), effects: [] };
  }
  return change(state, shown({ ...found, ...healthOf(state), state_since: now, updated_at: now }));
}

const deleted: Answer = { status: 204, body: "", outcome: "applied" };

const shown = (endpoint: Endpoint): Answer => ({
  status: 200,
  body: JSON.stringify(endpoint),
  outcome: "applied",
});

const healthOf = (state: "PAUSED" | "ACTIVE") => ({
  state,
  is_draining: state === "ACTIVE", // until the loop finds that nothing is parked
  failures: 0,
  failing_since: null,
  next_probe_at: null,
});

// Returns no rows, so that the loop is woken after the commit.
async function updateStates(tx: Transaction, changed: Effect[]): Promise<never[]> {
  await query(
    tx,
    sql`
    update endpoints
    set state = changed.state,
      state_since = changed.at,
      is_draining = changed.state = 'ACTIVE',
      failures = 0,
      failing_since = null,
      probes = 0,
      next_probe_at = null,
      probe_order_id = null,
      updated_at = changed.at
    from json_to_recordset(${JSON.stringify(changed)}) as changed (
      id uuid, state text, at timestamptz)
    where endpoints.endpoint_id = changed.id`,
  );
  return [];
}
