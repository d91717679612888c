import assert from "node:assert/strict";
import { fieldOf, fieldsOf, type Schema } from "./fields.ts";

const kindOf = (schema: Schema) => fieldOf("field", schema, true).kind;

Deno.test("nested fields follow their parent, also through references", () => {
  const schemas: Record<string, Schema> = {
    Basket: {
      type: "object",
      properties: { items: { type: "array", items: { $ref: "#/components/schemas/Item" } } },
      required: ["items"],
    },
    Item: { type: "object", properties: { size: { $ref: "#/components/schemas/Size" } } },
    Size: { type: "object", properties: { width: { type: "integer", description: "In mm" } } },
  };
  assert.deepEqual(fieldsOf({ $ref: "#/components/schemas/Basket" }, schemas), [
    { name: "items", kind: "list", required: true, description: undefined },
    { name: "items[].size", kind: "object", required: false, description: undefined },
    { name: "items[].size.width", kind: "integer", required: false, description: "In mm" },
  ]);
  assert.deepEqual(fieldsOf(undefined, schemas), []);
  assert.deepEqual(fieldsOf({ type: "string" }, schemas), []);
});

Deno.test("the kind of a field describes its values", () => {
  const cases: [Schema, string][] = [
    [{ type: "string", minLength: 1, maxLength: 255 }, "string, 1 to 255 characters"],
    [{ type: "string", pattern: "^a$" }, "string, matches ^a$"],
    [{ type: "string", format: "uuid", pattern: "^long$" }, "uuid"],
    [{ type: ["string", "null"], format: "date-time" }, "date-time or null"],
    [{ type: "string", enum: ["ACTIVE", "REVOKED"] }, "ACTIVE | REVOKED"],
    [{ const: true }, "true"],
    [
      { type: "integer", minimum: 1, maximum: 200, default: 50 },
      "integer, 1 to 200, default 50",
    ],
    [{ type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER }, "integer, at least 1"],
    [{
      type: "integer",
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
    }, "integer"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "string or null"],
    [{}, "any"],
  ];
  for (const [schema, kind] of cases) assert.equal(kindOf(schema), kind);
});
