// The fields of a schema, as the API page shows them.

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

export type Schemas = Record<string, Schema>;

export interface Field {
  name: string;
  kind: string; // "string, 1 to 255 characters"
  required: boolean;
  description: string | undefined;
}

// A nested field follows its parent, and is named like "items[].status".
export function fieldsOf(schema: Schema | undefined, schemas: Schemas, within = ""): Field[] {
  const { properties = {}, required = [] } = resolved(schema ?? {}, schemas);
  return Object.entries(properties).flatMap(([key, property]) => {
    const known = resolved(property, schemas);
    const name = `${within}${key}`;
    const { items } = known;
    const deeper = items ? fieldsOf(items, schemas, `${name}[].`) : [];
    return [
      fieldOf(name, known, required.includes(key)),
      ...(items ? deeper : fieldsOf(known, schemas, `${name}.`)),
    ];
  });
}

export function fieldOf(name: string, schema: Schema, required: boolean): Field {
  return { name, kind: kindOf(schema), required, description: schema.description };
}

function resolved(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : resolved(schemas[name] ?? {}, schemas);
}

function kindOf(schema: Schema): string {
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.map(kindOf).join(" or ");
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return schema.enum.join(" | ");
  return [typeOf(schema), ...limitsOf(schema)].join(", ");
}

function typeOf({ type, format, $ref, items }: Schema): string {
  const types = [type ?? ($ref ? "object" : "any")].flat();
  if (items && types.includes("array")) return "list";
  return types.map((one) => one === "string" && format ? format : one).join(" or ");
}

function limitsOf(schema: Schema): string[] {
  const { minLength, maxLength, minimum, maximum } = schema;
  const limits: string[] = [];
  if (maxLength !== undefined) limits.push(`${minLength ?? 0} to ${maxLength} characters`);
  if (minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    limits.push(`${minimum} to ${maximum}`);
  } else if (minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER) {
    limits.push(`at least ${minimum}`);
  }
  if (schema.pattern && !schema.format) limits.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined) limits.push(`default ${schema.default}`);
  return limits;
}
