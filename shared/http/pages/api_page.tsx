import type { JSX } from "hono/jsx/jsx-runtime";
import type { Description } from "../openapi.ts";
import { type Field, fieldOf, fieldsOf, type Schema, type Schemas } from "./fields.ts";
import { Page, rendered } from "./page.tsx";

// The API description as a page.

interface Content {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  example?: unknown;
  schema: Schema & { example?: unknown };
}

interface Answer {
  description: string;
  headers?: Record<string, { required?: boolean; description?: string; schema: Schema }>;
  content?: Record<string, Content>;
}

interface Operation {
  path: string;
  method: string;
  operationId: string;
  summary?: string;
  description?: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, Answer>;
}

export function apiPage(description: Description): string {
  const { title, description: general = "" } = description.info;
  const schemas = (description.components?.schemas ?? {}) as Schemas;
  const operations = operationsOf(description);
  const groups = (description.tags ?? []).map(({ name, description }) => ({
    name,
    description: description ?? "",
    operations: operations.filter(({ tags }) => tags.includes(name)),
  }));
  return rendered(
    <Page title={`${title} API`}>
      <header>
        <h1>{title} API</h1>
        <p>
          <Prose text={general} />
        </p>
        <p>
          For programs: <a href="/openapi.json">/openapi.json</a>, OpenAPI {description.openapi}.
        </p>
      </header>
      <div class="columns">
        <nav class="aside" aria-label="Operations">
          {groups.map(({ name, operations }) => (
            <>
              <h2>{name}</h2>
              <ul>
                {operations.map((operation) => (
                  <li>
                    <a href={`#${operation.operationId}`}>{titleOf(operation)}</a>
                  </li>
                ))}
              </ul>
            </>
          ))}
        </nav>
        <main id="main">
          {groups.map(({ name, description, operations }) => (
            <section class="group">
              <h2>{name}</h2>
              <p class="muted">{description}</p>
              {operations.map((operation) => (
                <OperationCard operation={operation} schemas={schemas} />
              ))}
            </section>
          ))}
        </main>
      </div>
    </Page>,
  );
}

function operationsOf({ paths = {} }: Description): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods ?? {}).map(([method, operation]) => ({ ...operation, path, method }))
  );
}

function titleOf({ summary, description, path }: Operation): string {
  return summary ?? description ?? path;
}

interface Shown {
  operation: Operation;
  schemas: Schemas;
}

function OperationCard({ operation, schemas }: Shown): JSX.Element {
  const { operationId, method, path, summary, description, responses } = operation;
  return (
    <article class="card" id={operationId} aria-labelledby={`${operationId}-title`}>
      <h3 id={`${operationId}-title`}>{titleOf(operation)}</h3>
      <p class="call">
        <span class={`chip ${method === "get" ? "good" : "warn"}`}>{method.toUpperCase()}</span>
        <code>{path}</code>
      </p>
      {summary && description && (
        <p>
          <Prose text={description} />
        </p>
      )}
      <Request operation={operation} schemas={schemas} />
      <h4>Answers</h4>
      {Object.entries(responses).map(([status, answer]) => (
        <AnswerDetails status={status} answer={answer} schemas={schemas} />
      ))}
    </article>
  );
}

function Request({ operation, schemas }: Shown): JSX.Element | null {
  const [type = "", body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const { parameters = [] } = operation;
  if (parameters.length === 0 && !body) return null;
  const given = (where: Parameter["in"]) =>
    parameters.filter((parameter) => parameter.in === where).map((parameter) => ({
      ...fieldOf(parameter.name, parameter.schema, parameter.required ?? false),
      description: parameter.description ?? parameter.schema.description,
    }));
  return (
    <>
      <Fields title="Path" fields={given("path")} />
      <Fields title="Query" fields={given("query")} />
      <Fields title="Headers" fields={given("header")} />
      <Fields title="Body" fields={fieldsOf(body?.schema, schemas)} />
      {(body || parameters.some(({ required }) => required)) && (
        <>
          <h4>Example</h4>
          <Example text={exampleOf(operation, type, body)} />
        </>
      )}
    </>
  );
}

// The request as text, with its required parts.
function exampleOf(
  { method, path, parameters = [] }: Operation,
  type: string,
  body: Content | undefined,
): string {
  let filled = path;
  const headers: string[] = [];
  for (const { name, in: where, required, schema } of parameters) {
    const value = String(schema.example ?? "…");
    if (where === "path") filled = filled.replace(`{${name}}`, encodeURIComponent(value));
    if (where === "header" && required) headers.push(`${name}: ${value}`);
  }
  const lines = [`${method.toUpperCase()} ${filled}`, ...headers];
  if (!body) return lines.join("\n");
  const written = body.example === undefined ? "…" : pretty(body.example);
  return [...lines, `Content-Type: ${type}`, "", written].join("\n");
}

function AnswerDetails(
  { status, answer, schemas }: { status: string; answer: Answer; schemas: Schemas },
): JSX.Element {
  const [[type, content] = ["", {} as Content]] = Object.entries(answer.content ?? {});
  const headers = Object.entries(answer.headers ?? {}).map(([name, header]) => ({
    ...fieldOf(name, header.schema, header.required ?? false),
    description: header.description ?? header.schema.description,
  }));
  const named = Object.values(content.examples ?? {}).map(({ value }) => value);
  const examples = content.example === undefined ? named : [content.example, ...named];
  const tone = status < "300" ? "good" : status < "500" ? "warn" : "bad";
  return (
    <details>
      <summary>
        <b class={tone}>{status}</b> {answer.description}
      </summary>
      <p class="muted">{type}</p>
      <Fields title="Headers" fields={headers} />
      <Fields title="Body" fields={fieldsOf(content.schema, schemas)} />
      {examples.map((example) => <Example text={pretty(example)} />)}
    </details>
  );
}

function Fields({ title, fields }: { title: string; fields: Field[] }): JSX.Element | null {
  if (fields.length === 0) return null;
  return (
    <>
      <h4>{title}</h4>
      <dl class="fields">
        {fields.map(({ name, kind, required, description }) => (
          <div>
            <dt>
              <code>{name}</code>
              <span class="muted">{kind}{required ? "" : ", optional"}</span>
            </dt>
            {description && <dd>{description}</dd>}
          </div>
        ))}
      </dl>
    </>
  );
}

// Long lines scroll; the tab index makes that possible with the keyboard.
function Example({ text }: { text: string }): JSX.Element {
  return <pre tabindex={0} role="region" aria-label="Example">{text}</pre>;
}

// Of Markdown, descriptions use only `code`.
function Prose({ text }: { text: string }): JSX.Element {
  return <>{text.split("`").map((part, i) => i % 2 === 1 ? <code>{part}</code> : part)}</>;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
