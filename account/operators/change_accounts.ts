import { type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Answer, Decision } from "@kenri/shared/commands/answer.ts";
import { type Command, commandBatch } from "@kenri/shared/commands/command.ts";
import { errorAnswer, fieldSchema } from "@kenri/shared/http/fields.ts";
import { addRoute } from "@kenri/shared/http/route.ts";
import { type Trace, traceOf } from "@kenri/shared/http/trace.ts";
import {
  operationFields,
  operationRoute,
  readOperation,
} from "@kenri/shared/operators/operations.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { type Database, transaction } from "@kenri/shared/postgres/postgres.ts";
import type { Batch } from "@kenri/shared/queue/batch.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import { activeTraceparent } from "@kenri/shared/telemetry/tracing.ts";
import type { Effect, Situation } from "../change.ts";
import { changeCommand, type Input } from "../change_account.ts";
import type { ErrorCode } from "../errors.ts";
import { lastAdminRefusal } from "../last_admin.ts";
import { allRoles } from "../user.ts";

// What operators change of an account: the same changes as those of the API, in the same audit, and
// with the scope of the API. Who may only send dead letters back may not make anybody an ADMIN.

const fields = { user_id: fieldSchema(), ...operationFields };
const bodySchema = z.object(fields);
const rolesSchema = z.object({
  ...fields,
  roles: z.array(z.enum(allRoles, `must be of ${allRoles.join(", ")}`)),
});

export type ChangeBody = z.input<typeof bodySchema>;
export type RolesBody = z.input<typeof rolesSchema>;

const answerSchema = z.object({
  outcome: z.enum(["CHANGED", "WOULD_BE_CHANGED", "UNCHANGED", "UNKNOWN_USER"]),
}).openapi("AccountChanged");

export type ChangeAnswer = z.infer<typeof answerSchema>;
type Outcome = ChangeAnswer["outcome"];

interface Change<Schema extends z.ZodType<Fields>> {
  path: string;
  summary: string;
  description: string;
  schema: Schema;
  inputOf(fields: z.output<Schema>, trace: Trace): Input;
}

type Fields = z.output<typeof bodySchema>;

const common = ({ user_id, who, reason }: Fields) => ({ userId: user_id, actor: who, reason });

const suspend: Change<typeof bodySchema> = {
  path: "suspend",
  summary: "Suspend an account",
  description: "Its sessions are refused until it is resumed",
  schema: bodySchema,
  inputOf: (fields, trace) => ({
    ...{ kind: "status", action: "SUSPEND", ...common(fields), ...trace },
  }),
};

const resume: Change<typeof bodySchema> = {
  path: "resume",
  summary: "Resume a suspended account",
  description: "Its sessions work again",
  schema: bodySchema,
  inputOf: (fields, trace) => ({
    ...{ kind: "status", action: "RESUME", ...common(fields), ...trace },
  }),
};

const endSessions: Change<typeof bodySchema> = {
  path: "end-sessions",
  summary: "End all sessions of a user",
  description: "The user has to log in again",
  schema: bodySchema,
  inputOf: (fields, trace) => ({ ...{ kind: "end_sessions", ...common(fields), ...trace } }),
};

const setRoles: Change<typeof rolesSchema> = {
  path: "roles",
  summary: "Set the roles of a user",
  description: "Those that are not given are taken away",
  schema: rolesSchema,
  inputOf: ({ roles, ...fields }, trace) => ({
    ...{ kind: "roles", ...common(fields), ...trace },
    roles: allRoles.filter((role) => roles.includes(role)),
  }),
};

type OperatorCommand = Command<Input, Situation, Effect, OutboxRow>;

const command: OperatorCommand = {
  ...changeCommand,
  name: "accounts_by_operators",
  decide: (input, situation) => {
    const decision = changeCommand.decide(input, situation);
    return { ...decision, answer: answerTo(decision, "CHANGED") };
  },
};

// The refusal to take the role from the last ADMIN stays an error.
function answerTo({ answer, effects }: Decision<Effect>, changed: Outcome): Answer {
  if (answer.status === 409) return answer;
  const outcome: Outcome = answer.status === 404
    ? "UNKNOWN_USER"
    : effects.length > 0
    ? changed
    : "UNCHANGED";
  return { status: 200, body: JSON.stringify({ outcome }), outcome: "applied" };
}

export function addChangeRoutes(
  app: OpenAPIHono,
  database: Database,
  toRelay: Handover<OutboxRow>,
): void {
  const batch = commandBatch(database, command, toRelay);
  addChange(app, database, batch, suspend);
  addChange(app, database, batch, resume);
  addChange(app, database, batch, setRoles);
  addChange(app, database, batch, endSessions);
}

function addChange<Schema extends z.ZodType<Fields>>(
  app: OpenAPIHono,
  database: Database,
  batch: Batch<Input, Answer>,
  { path, summary, description, schema, inputOf }: Change<Schema>,
): void {
  const described = operationRoute(
    `/operations/account/${path}`,
    summary,
    description,
    schema,
    answerSchema,
  );
  const { description: refused, messages } = lastAdminRefusal;
  const route = {
    ...described,
    scope: "accounts:admin" as const,
    responses: { ...described.responses, 409: errorAnswer<ErrorCode>(refused, messages) },
  };
  addRoute(app, route, async (context) => {
    const fields = await readOperation(context, schema);
    const input = inputOf(fields, traceOf(context.req.raw.headers, activeTraceparent()));
    const { status, body } = fields.dry_run
      ? await decided(database, input)
      : await batch.add(input);
    return new Response(body, { status, headers: { "Content-Type": "application/json" } });
  });
}

function decided(database: Database, input: Input): Promise<Answer> {
  return transaction(database, async (tx) => {
    const [situation] = await changeCommand.find(tx, [input]);
    if (!situation) throw new Error("An input has no situation");
    return answerTo(changeCommand.decide(input, situation), "WOULD_BE_CHANGED");
  });
}
