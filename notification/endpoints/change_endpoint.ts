import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { notPublic, requirePublic } from "../orders/require_public.ts";
import type { Sender } from "../orders/sender_client.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import {
  type Endpoint,
  endpointExample,
  type EndpointFields,
  endpointPath,
  endpointSchema,
  tag,
  withoutEndpoint,
} from "./endpoint.ts";
import { otherFields, urlSchema } from "./fields.ts";
import {
  type Found,
  lockEndpoints,
  notFound,
  ofOneEndpoint,
  type OnEndpoint,
  onEndpoint,
} from "./on_endpoint.ts";

// A caller changes what it chose. Webhooks that wait are sent to the new url; the other fields are
// for events that are received afterwards.

export interface ChangeEndpoint extends OnEndpoint {
  fields: Partial<EndpointFields>;
}

interface Effect {
  kind: "changed";
  endpoint: Endpoint;
}

export const changedFieldsSchema = z.object({ url: urlSchema().optional(), ...otherFields() })
  .openapi("EndpointChange");

type Given = z.infer<typeof changedFieldsSchema>;

export function changeRoute(
  { atOnce }: EndpointOptions,
  sender: Sender | undefined,
): CommandRoute<Given, ChangeEndpoint> {
  return {
    route: {
      method: "patch",
      path: "/v1/endpoints/{endpoint_id}",
      scope: "endpoints:write",
      operationId: "changeEndpoint",
      tags: [tag],
      summary: "Change an endpoint",
      description:
        "Fields that are not sent stay as they are; null brings the default back. Webhooks that wait " +
        "are sent to the new url. The other fields are for events that are received afterwards.",
      request: { params: endpointPath },
      responses: {
        200: {
          description: "The endpoint after the change",
          content: { "application/json": { schema: endpointSchema, example: endpointExample } },
        },
        ...withoutEndpoint,
      },
    },
    body: { schema: changedFieldsSchema, example: { event_types: endpointExample.event_types } },
    invalid: notPublic,
    toInput: async (given, caller, req) => {
      if (given.url !== undefined) await requirePublic(sender, given.url);
      return { ...onEndpoint(caller, req), fields: fieldsOf(given, atOnce) };
    },
  };
}

function fieldsOf(
  { url, event_types, user_id, ordering, at_once, description }: Given,
  atOnce: number,
): Partial<EndpointFields> {
  return {
    ...(url === undefined ? {} : { url }),
    ...(event_types === undefined ? {} : { event_types }),
    ...(user_id === undefined ? {} : { user_id }),
    ...(ordering === undefined ? {} : { ordering: ordering ?? "key" }),
    ...(at_once === undefined ? {} : { at_once: at_once ?? atOnce }),
    ...(description === undefined ? {} : { description }),
  };
}

export const changeCommand: Command<ChangeEndpoint, Found, Effect> = {
  ...ofOneEndpoint,
  name: "endpoint_changes",
  identityOf: () => undefined, // a repeated request finds the endpoint as the first one left it
  find: lockEndpoints,
  decide,
  apply: { changed: updateFields },
};

function decide({ fields }: ChangeEndpoint, { now, found }: Found): Decision<Effect> {
  if (!found) return { answer: notFound, effects: [] };
  const endpoint = { ...found, ...fields, updated_at: now };
  return {
    answer: { status: 200, body: JSON.stringify(endpoint), outcome: "applied" },
    effects: [{ kind: "changed", endpoint }],
  };
}

async function updateFields(tx: Transaction, changed: Effect[]): Promise<void> {
  await query(
    tx,
    sql`
    update endpoints
    set url = changed.url,
      event_types = changed.event_types,
      user_id = changed.user_id,
      ordering = changed.ordering,
      at_once = changed.at_once,
      description = changed.description,
      updated_at = changed.updated_at
    from json_to_recordset(${JSON.stringify(changed.map(({ endpoint }) => endpoint))}) as changed (
      endpoint_id uuid, url text, event_types text[], user_id text, ordering text, at_once integer,
      description text, updated_at timestamptz)
    where endpoints.endpoint_id = changed.endpoint_id`,
  );
}
