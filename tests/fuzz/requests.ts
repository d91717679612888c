// Requests generated from a route's description: valid ones, valid ones with one defect, and
// garbage.
import fc from "fast-check";
import { anyNumber, anyText, anyTime, headerText } from "./fuzz.ts";
import type { Parameter, Route, Schema } from "./openapi.ts";

export interface FuzzRequest {
  route: string; // its name
  path: string; // with its query; "{name}" is to be replaced by a value that the service has answered
  method: string;
  headers: Record<string, string>;
  body: BodyInit | undefined; // also with "{name}"
}

export function requestTo(route: Route): fc.Arbitrary<FuzzRequest> {
  return fc.oneof(
    { weight: 4, arbitrary: goodRequest(route) },
    { weight: 5, arbitrary: brokenRequest(route) },
    { weight: 2, arbitrary: garbageRequest(route) },
  );
}

interface Parts {
  values: Map<Parameter, string | undefined>;
  body: unknown; // undefined: none
}

function goodParts({ parameters, body }: Route): fc.Arbitrary<Parts> {
  const values = parameters.map((parameter) => {
    const text = parameter.in === "header" ? goodHeader : goodText;
    const known = fc.constant(`{${parameter.name}}`);
    const good = goodValue(parameter.schema, text).map(String);
    const isId = parameter.in === "path" || parameter.name.endsWith("_id");
    const value = isId ? fc.oneof(good, known) : good;
    return parameter.required ? value : seldom(value);
  });
  return fc.record({
    values: fc.tuple(...values).map((values) =>
      new Map(parameters.map((parameter, i) => [parameter, values[i]]))
    ),
    body: body ? goodValue(body) : fc.constant(undefined),
  });
}

export function goodRequest(route: Route): fc.Arbitrary<FuzzRequest> {
  return goodParts(route).map((parts) => toRequest(route, parts));
}

function brokenRequest(route: Route): fc.Arbitrary<FuzzRequest> {
  const ways: fc.Arbitrary<FuzzRequest>[] = route.parameters.map((parameter) =>
    fc.record({ parts: goodParts(route), value: brokenText(parameter) }).map(({ parts, value }) =>
      toRequest(route, { ...parts, values: new Map(parts.values).set(parameter, value) })
    )
  );
  const { body } = route;
  if (body) {
    const broken = fc.record({ parts: goodParts(route), body: brokenValue(body) });
    ways.push(broken.map(({ parts, body }) => toRequest(route, { ...parts, body })));
    const withHeaders = fc.record({ request: goodRequest(route), type: headerText });
    ways.push(withHeaders.map(({ request, type }) => ({
      ...request,
      headers: { ...request.headers, "Content-Type": type },
    })));
  }
  return ways.length > 0 ? fc.oneof(...ways) : garbageRequest(route);
}

const anyBody: fc.Arbitrary<BodyInit> = fc.oneof(
  fc.json(),
  fc.string({ unit: "binary", maxLength: 100 }),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => bytes as Uint8Array<ArrayBuffer>),
  fc.nat(40_000).map((length) => " ".repeat(length)),
  fc.nat(7_000).map((depth) => '{"a":'.repeat(depth)),
);
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "gEt"];

const headerNames = ["Idempotency-Key", "Content-Type", "traceparent", "X-Trace-Id"]
  .concat("Accept", "Authorization", "Cookie", "Range", "X-Forwarded-For");

function garbageRequest(route: Route): fc.Arbitrary<FuzzRequest> {
  return fc.record({
    request: goodRequest(route),
    method: fc.oneof(fc.constant(route.method), fc.constantFrom(...methods)),
    tail: fc.oneof(fc.constant(""), anyText.map((text) => `?${escaped(text)}`), anyPath),
    headers: fc.dictionary(fc.constantFrom(...headerNames), headerText, { maxKeys: 6 }),
    body: anyBody,
  }).map(({ request, method, tail, headers, body }) => ({
    ...request,
    path: request.path + tail,
    method,
    headers: { ...request.headers, ...headers },
    body: /^(get|head)$/i.test(method) ? undefined : body,
  }));
}

const anyPath = fc.array(anyText, { minLength: 1, maxLength: 3 })
  .map((parts) => `/${parts.map(escaped).join("/")}`);

/** Also escapes invalid text: half a surrogate pair is sent as the bytes that it would have. */
function escaped(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : "%ed%a0%80";
}

function toRequest(
  { name, path, method, bodyType }: Route,
  { values, body }: Parts,
): FuzzRequest {
  const query: string[] = [];
  const headers: Record<string, string> = {};
  let filled = path;
  for (const [parameter, value] of values) {
    const place = `{${parameter.name}}`;
    if (parameter.in === "path") {
      if (value !== place) filled = filled.replace(place, () => escaped(value ?? ""));
    } else if (value === undefined) continue;
    else if (parameter.in === "header") headers[parameter.name] = value;
    else query.push(`${parameter.name}=${value === place ? place : escaped(value)}`);
  }
  if (body !== undefined) headers["Content-Type"] ??= bodyType;
  return {
    route: name,
    path: query.length > 0 ? `${filled}?${query.join("&")}` : filled,
    method,
    headers,
    body: body === undefined ? undefined : written(body, bodyType),
  };
}

function written(body: unknown, type: string): string {
  if (typeof body === "string") return body;
  const isForm = type.includes("form") && typeof body === "object" && body !== null;
  if (!isForm) return JSON.stringify(body);
  return Object.entries(body).map(([name, value]) => `${name}=${escaped(`${value}`)}`).join("&");
}

const goodText = fc.oneof(
  fc.constantFrom("ann", "bob", "cid"), // often the same, so that requests meet
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 })
    .map((text) => `a${text.replaceAll(/\p{Cc}/gu, "")}`),
);

const yearMs = 365 * 86_400_000;
const goodTime = fc.integer({ min: -yearMs, max: yearMs })
  .map((ms) => new Date(Date.now() + ms).toISOString());
const goodHeader = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom("key-1", "key-2", "key-3") },
  { weight: 4, arbitrary: fc.stringMatching(/^[\x21-\x7e]{1,60}$/) },
);

// Most of those that are made of an authority are blocked.
const goodUrl = fc.oneof(
  { weight: 4, arbitrary: fc.webUrl({ validSchemes: ["https"], withQueryParameters: true }) },
  {
    weight: 1,
    arbitrary: fc.webAuthority({ withUserInfo: true, withIPv4Extended: true, withPort: true })
      .map((authority) => `https://${authority}/`),
  },
);

function goodValue(schema: Schema, text = goodText): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object":
      return goodObject(schema);
    case "array":
      return fc.array(goodValue(schema.items ?? {}), { minLength: 1, maxLength: 5 });
    case "integer":
    case "number":
      return goodNumber(schema);
    case "boolean":
      return fc.boolean();
  }
  if (schema.format === "date-time") return goodTime;
  if (schema.format === "uuid") return fc.uuid();
  if (schema.format === "uri") return goodUrl;
  return schema.pattern ? fc.stringMatching(new RegExp(schema.pattern)) : text;
}

function goodNumber({ minimum: min = 0, maximum: max = 1_000 }: Schema): fc.Arbitrary<number> {
  const small = fc.integer({ min, max: Math.min(max, min + 100) });
  return fc.oneof(small, fc.integer({ min, max }), fc.constantFrom(min, max));
}

function goodObject(
  { properties = {}, required = [] }: Schema,
): fc.Arbitrary<Record<string, unknown>> {
  const values = Object.entries(properties).map(([name, of]) => [
    name,
    required.includes(name) ? goodMember(name, of) : seldom(goodMember(name, of)),
  ]);
  return fc.record(Object.fromEntries(values)); // JSON leaves out what is undefined
}

function goodMember(name: string, schema: Schema): fc.Arbitrary<unknown> {
  const good = goodValue(schema);
  return name.endsWith("_id") ? fc.oneof(good, fc.constant(`{${name}}`)) : good;
}

/** Many parameters exclude each other. */
function seldom<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: value },
  );
}

function brokenText(parameter: Parameter): fc.Arbitrary<string | undefined> {
  const text = parameter.in === "header" ? headerText : anyText;
  return fc.oneof(text, fc.constantFrom(undefined, "", "0", "-1", "1e9", "NaN"));
}

/** One member is missing, has another type, or has an invalid value. */
function brokenValue(schema: Schema): fc.Arbitrary<unknown> {
  const names = Object.keys(schema.properties ?? {});
  if (names.length === 0) return fc.oneof(anyText, fc.jsonValue());
  const name = fc.constantFrom(...names);
  const broken = name.chain((name) =>
    fc.tuple(fc.constant(name), brokenMember(schema.properties?.[name]))
  );
  return fc.tuple(goodObject(schema), broken)
    .map(([good, [name, value]]) => ({ ...good, [name]: value }));
}

function brokenMember({ format, type }: Schema = {}): fc.Arbitrary<unknown> {
  const isNumber = type === "integer" || type === "number";
  const ofItsKind = format === "date-time" ? anyTime : isNumber ? anyNumber : anyText;
  const ofAnother = fc.oneof(fc.jsonValue(), fc.constant(undefined));
  return fc.oneof({ weight: 2, arbitrary: ofItsKind }, { weight: 1, arbitrary: ofAnother });
}
