import { z } from "@hono/zod-openapi";
import type { Decision } from "@kenri/shared/commands/answer.ts";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute } from "@kenri/shared/commands/route.ts";
import { query, together, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { duration } from "@kenri/shared/process/setting_kinds.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import { endpointExample, endpointPath, tag, withoutEndpoint } from "./endpoint.ts";
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
import { newSecret } from "./secrets.ts";
import { type NewSecret, secretExample, secretField, storeSecrets } from "./store_secrets.ts";

// An endpoint gets a new secret. Until the overlap ends its webhooks are also signed with the secrets
// from before, so that the receiver can change over without losing one.

export interface RotateSecret extends OnEndpoint {
  overlapMs: number;
}

interface Situation extends Found {
  secret: string;
  oldEnd: string; // of the overlap
  valid: number; // secrets, before this one
}

interface Ended {
  kind: "ended";
  id: string;
  at: string;
}

// Each one makes every webhook of the endpoint longer.
const maxSecrets = 5;
const tooMany =
  `the endpoint has ${maxSecrets} valid secrets: wait for the end of an overlap, or rotate with an overlap of 0s`;

const maxOverlapMs = 30 * 24 * 3_600_000;

function overlapMsOf(written: string): number | undefined {
  if (/^0{1,9}(ms|s|m|h|d)$/.test(written)) return 0;
  return duration(maxOverlapMs).safeParse(written).data;
}

function overlapSchema() {
  const error = "must be a duration of at most 30d such as 24h, or 0s";
  return z.string(error).refine((written) => overlapMsOf(written) !== undefined, error).openapi({
    pattern: String.raw`^\d{1,9}(ms|s|m|h|d)$`,
    description:
      "How long the secrets from before stay valid, at most 30d; without it, 24h. With 0s they end now",
  });
}

export const rotationSchema = z.object({ overlap: overlapSchema().nullish() })
  .openapi("SecretRotation");

export const rotatedSchema = z.object({
  endpoint_id: z.uuid(),
  ...secretField,
  old_secrets_end_at: z.iso.datetime(),
}).openapi("RotatedSecret");

export const rotateRoute: CommandRoute<z.infer<typeof rotationSchema>, RotateSecret> = {
  route: {
    method: "post",
    path: "/v1/endpoints/{endpoint_id}/rotate-secret",
    scope: "endpoints:write",
    operationId: "rotateSecret",
    tags: [tag],
    summary: "Give an endpoint a new secret",
    description:
      "During the overlap, each webhook has one signature for each valid secret. The secret is shown " +
      "only here, and not in the answer to a repeated request.",
    request: { params: endpointPath },
    responses: {
      200: {
        description: "The new secret",
        content: {
          "application/json": {
            schema: rotatedSchema,
            example: {
              endpoint_id: endpointExample.endpoint_id,
              secret: secretExample,
              old_secrets_end_at: "2026-01-02T00:00:00.000000Z",
            },
          },
        },
      },
      ...withoutEndpoint,
    },
  },
  key,
  body: { schema: rotationSchema, example: { overlap: "24h" } },
  refusals: {
    description: "The endpoint has too many valid secrets",
    messages: { ENDPOINT_STATE_CONFLICT: tooMany },
  },
  toInput: ({ overlap }, sender, req) => ({
    ...onEndpoint(sender, req),
    overlapMs: overlapMsOf(overlap ?? "24h") ?? 0,
  }),
};

export function rotateCommand(
  secretKeys: Uint8Array[],
): Command<RotateSecret, Situation, Ended | NewSecret> {
  return {
    ...ofOneEndpoint,
    name: "rotations",
    identityOf: (rotate) => identityOf(rotate, ["ROTATE SECRET", rotate.id, rotate.overlapMs]),
    find: findSituations,
    decide,
    apply: {
      ended: endSecrets,
      secret: (tx, secrets) => storeSecrets(tx, secrets, secretKeys),
    },
  };
}

function decide(
  { id, overlapMs }: RotateSecret,
  { found, secret, oldEnd, valid }: Situation,
): Decision<Ended | NewSecret> {
  if (!found) return { answer: notFound, effects: [] };
  if (overlapMs > 0 && valid >= maxSecrets) return { answer: stateConflict(tooMany), effects: [] };
  const rotated = { status: 200, outcome: "applied" as const };
  const old_secrets_end_at = oldEnd;
  return {
    answer: { ...rotated, body: JSON.stringify({ endpoint_id: id, secret, old_secrets_end_at }) },
    repeated: { ...rotated, body: JSON.stringify({ endpoint_id: id, old_secrets_end_at }) },
    effects: [{ kind: "ended", id, at: oldEnd }, { kind: "secret", endpointId: id, secret }],
  };
}

async function findSituations(tx: Transaction, rotations: RotateSecret[]): Promise<Situation[]> {
  const [found, secrets] = await together([
    lockEndpoints(tx, rotations),
    findSecrets(tx, rotations),
  ]);
  return found.map((row, i) => ({
    oldEnd: "",
    valid: 0,
    ...row,
    ...secrets[i],
    secret: newSecret(),
  }));
}

// Only commands change secrets, and one command at a time has the lock of the endpoint.
function findSecrets(
  tx: Transaction,
  rotations: RotateSecret[],
): Promise<Pick<Situation, "oldEnd" | "valid">[]> {
  return query(
    tx,
    sql`
    select ${
      utc(sql`clock_timestamp() + make_interval(secs => wanted.overlap_ms / 1000)`)
    } as "oldEnd",
      (
        select count(*)
        from endpoint_secrets
        where endpoint_secrets.endpoint_id = wanted.id
          and coalesce(expires_at > now(), true)
      ) as valid
    from unnest(
      ${rotations.map(({ id }) => uuidPattern.test(id) ? id : null)}::uuid[],
      ${rotations.map(({ overlapMs }) => overlapMs)}::float8[]
    ) with ordinality as wanted (id, overlap_ms, position)
    order by wanted.position`,
  );
}

// An earlier rotation may have given a secret less time. Those that have ended are not needed again.
async function endSecrets(tx: Transaction, ended: Ended[]): Promise<void> {
  const rows = JSON.stringify(ended);
  await together([
    query(
      tx,
      sql`
      update endpoint_secrets
      set expires_at = least(expires_at, ended.at)
      from json_to_recordset(${rows}) as ended (id uuid, at timestamptz)
      where endpoint_secrets.endpoint_id = ended.id`,
    ),
    query(
      tx,
      sql`
      delete from endpoint_secrets
      using json_to_recordset(${rows}) as ended (id uuid)
      where endpoint_secrets.endpoint_id = ended.id
        and expires_at <= clock_timestamp()`,
    ),
  ]);
}
