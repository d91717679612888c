// The parts of /openapi.json that a client needs.
import assert from "node:assert/strict";
import { z } from "zod";
import { type Answer, call } from "../support/api.ts";

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
}

type Content = Record<string, { schema: Schema }>;

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema: Schema;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
}

export interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Route {
  name: string;
  path: string;
  method: string; // in capitals
  parameters: Parameter[];
  body: Schema | undefined;
  bodyType: string; // its Content-Type
  answers: Map<number, Content>;
  validatorOf(status: number, contentType: string): z.ZodType | undefined;
}

export async function routesOf(url: string): Promise<Route[]> {
  const api: Description = (await call(`${url}/openapi.json`)).json;
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => routeOf(api, path, method, operation))
  );
}

function routeOf(api: Description, path: string, method: string, operation: Operation): Route {
  const [[bodyType, body] = []] = Object.entries(operation.requestBody?.content ?? {});
  const answers = new Map(
    Object.entries(operation.responses).map(([status, { content }]) => [
      Number(status),
      content ?? {},
    ]),
  );
  const validators = new Map<Schema, z.ZodType>();
  return {
    name: `${method} ${path}`,
    path,
    method: method.toUpperCase(),
    parameters: operation.parameters ?? [],
    body: body && resolved(api, body.schema),
    bodyType: bodyType ?? "",
    answers,
    validatorOf: (status, contentType) => {
      const schema = answers.get(status)?.[contentType.split(";")[0] ?? ""]?.schema;
      if (!schema) return undefined;
      const validator = validators.get(schema) ?? validatorOf(api, schema);
      validators.set(schema, validator);
      return validator;
    },
  };
}

function resolved(api: Description, schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : resolved(api, api.components.schemas[name] as Schema);
}

export function validatorOf(api: Description, schema: Schema): z.ZodType {
  const whole = JSON.stringify({ ...schema, $defs: api.components.schemas });
  return z.fromJSONSchema(JSON.parse(whole.replaceAll("#/components/schemas/", "#/$defs/")));
}

// Statuses that any path may return, even if they are not described.
const general = [401, 404, 405, 408, 413, 414, 415, 431];
// Words of the implementation, which no message may contain.
const internals =
  /\.ts\b|node_modules|\bat \w+ \(|postgres|kenri_|\bselect\b|\binsert\b|stack|zod/i;

/**
 * Fails unless status and body are as described, and errors have exactly a code and a message. No 5xx is
 * right, unless a service behind is too slow on a busy machine.
 */
export function assertDescribed(route: Route, method: string, answer: Answer): void {
  const { status, headers, text, json } = answer;
  const type = headers.get("Content-Type") ?? "";
  const what = `${method} ${route.path}: ${status} ${text.slice(0, 300)}`;
  assert.ok(route.answers.has(status) || general.includes(status), what);
  assert.ok(status < 500 || status === 504, what);
  if (status === 405) assert.ok(headers.get("Allow"), what);
  if (method === "HEAD") return assert.equal(text, "", what);
  if (status >= 400) {
    assert.equal(type, "application/json", what);
    assert.deepEqual(Object.keys(json), ["code", "message"], what);
    assert.match(json.code, /^[A-Z_]+$/, what);
    assert.ok(json.message.length > 0 && json.message.length < 500, what);
    assert.doesNotMatch(json.message, internals, what);
    return;
  }
  if (status === 204 || status === 302) return assert.equal(text, "", what);
  const validator = route.validatorOf(status, type);
  assert.ok(validator, `${what} is not described as ${type}`);
  validator.parse(type.startsWith("application/json") ? json : text);
}
