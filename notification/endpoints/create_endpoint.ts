import { z } from "@hono/zod-openapi";
import { type Decision, refusal } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute, Sender as Caller } from "@kenri/shared/commands/route.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import { statusOfCode, withoutSender } from "../errors.ts";
import { notPublic, requirePublic } from "../orders/require_public.ts";
import type { Sender } from "../orders/sender_client.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import {
  type Endpoint,
  endpointExample,
  type EndpointFields,
  endpointSchema,
  newEndpoint,
  tag,
} from "./endpoint.ts";
import { otherFields, urlSchema } from "./fields.ts";
import { answerTtlMs, identityOf, key } from "./on_endpoint.ts";
import { newSecret } from "./secrets.ts";
import { type NewSecret, secretExample, secretField, storeSecrets } from "./store_secrets.ts";

// An endpoint is made with its first secret, which only this answer shows.

export interface Create extends Caller {
  fields: EndpointFields;
}

interface Situation {
  id: string;
  secret: string;
  now: string;
  endpoints: number; // of the caller
}

interface Made {
  kind: "endpoint";
  endpoint: Endpoint;
  caller: string;
}

export const newEndpointSchema = z.object({ url: urlSchema(), ...otherFields() })
  .openapi("NewEndpoint");

export const madeSchema = endpointSchema.extend(secretField).openapi("MadeEndpoint");

const limitReached = (max: number) => `the caller has ${max} endpoints, and may not have more`;

export function createRoute(
  { atOnce, maxPerCaller }: EndpointOptions,
  sender: Sender | undefined,
): CommandRoute<z.infer<typeof newEndpointSchema>, Create> {
  const { url, event_types, description } = endpointExample;
  return {
    route: {
      method: "post",
      path: "/v1/endpoints",
      scope: "endpoints:write",
      operationId: "createEndpoint",
      tags: [tag],
      summary: "Register a url for webhooks",
      description:
        "Every event that is received from now on, and that the endpoint chooses, is sent to it as a " +
        "signed webhook. The secret is shown only here, and not in the answer to a repeated request.",
      responses: {
        201: {
          description: "The endpoint, with the secret that its webhooks are signed with",
          content: {
            "application/json": {
              schema: madeSchema,
              example: { ...endpointExample, secret: secretExample },
            },
          },
        },
        503: withoutSender,
      },
    },
    key,
    body: { schema: newEndpointSchema, example: { url, event_types, description } },
    refusals: {
      description: "The caller has too many endpoints",
      messages: { ENDPOINT_LIMIT_REACHED: limitReached(maxPerCaller) },
    },
    invalid: notPublic,
    toInput: async (given, caller) => {
      await requirePublic(sender, given.url);
      return {
        ...caller,
        fields: {
          url: given.url,
          event_types: given.event_types ?? null,
          user_id: given.user_id ?? null,
          ordering: given.ordering ?? "key",
          at_once: given.at_once ?? atOnce,
          description: given.description ?? null,
        },
      };
    },
  };
}

export function createCommand(
  { maxPerCaller }: EndpointOptions,
  secretKeys: Uint8Array[],
): Command<Create, Situation, Made | NewSecret> {
  return {
    name: "new_endpoints",
    answerTtlMs,
    identityOf: (create) => identityOf(create, ["CREATE ENDPOINT", create.fields]),
    locksOf: ({ caller }) => [JSON.stringify(["endpoints", caller])],
    find: findSituations,
    decide: (create, situation) => decide(create, situation, maxPerCaller),
    apply: {
      endpoint: storeEndpoints,
      secret: (tx, secrets) => storeSecrets(tx, secrets, secretKeys),
    },
  };
}

function decide(
  { fields, caller }: Create,
  { id, secret, now, endpoints }: Situation,
  maxPerCaller: number,
): Decision<Made | NewSecret> {
  if (endpoints >= maxPerCaller) {
    const message = limitReached(maxPerCaller);
    const answer = refusal(statusOfCode, "over_limit", "ENDPOINT_LIMIT_REACHED", message);
    return { answer, effects: [] };
  }
  const endpoint = newEndpoint(id, fields, now);
  const made = { status: 201, outcome: "applied" as const };
  return {
    answer: { ...made, body: JSON.stringify({ ...endpoint, secret }) },
    repeated: { ...made, body: JSON.stringify(endpoint) },
    effects: [{ kind: "endpoint", endpoint, caller }, { kind: "secret", endpointId: id, secret }],
  };
}

async function findSituations(tx: Transaction, creates: Create[]): Promise<Situation[]> {
  const found = await query<Pick<Situation, "now" | "endpoints">>(
    tx,
    sql`
    select ${utc(sql`clock_timestamp()`)} as now,
      (
        select count(*)
        from endpoints
        where endpoints.caller = wanted.caller
          and state <> 'DELETED'
      ) as endpoints
    from unnest(${creates.map(({ caller }) => caller)}::text[])
      with ordinality as wanted (caller, position)
    order by wanted.position`,
  );
  return found.map((row) => ({ ...row, id: uuidv7(), secret: newSecret() }));
}

async function storeEndpoints(tx: Transaction, made: Made[]): Promise<void> {
  await query(
    tx,
    sql`
    insert into endpoints
      (endpoint_id, caller, url, event_types, user_id, ordering, at_once, description, state_since,
       created_at, updated_at)
    select endpoint_id, caller, url, event_types, user_id, ordering, at_once, description,
      created_at, created_at, created_at
    from json_to_recordset(${
      JSON.stringify(made.map(({ endpoint, caller }) => ({ ...endpoint, caller })))
    }) as (
      endpoint_id uuid, caller text, url text, event_types text[], user_id text, ordering text,
      at_once integer, description text, created_at timestamptz)`,
  );
}
