import { environmentName } from "../process/program.ts";
import { UsageError } from "./command.ts";

/**
 * Exit code 3: a service did not answer or refused. The request may or may not have had an effect.
 */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Exit code 1: a service refused a change, and nothing was changed. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** A route for operators, with the types of what it takes and answers. */
export interface Route<Fields, Answer> {
  root: "debug" | "operations";
  path: string; // behind the root and the name of the service
  hasBody: boolean;
  types?: (fields: Fields) => Answer; // never set
}

export type NoFields = Record<never, never>;

/** A route that is read with a query. */
export function reads<Fields, Answer>(path: string): Route<Fields, Answer> {
  return { root: "debug", path, hasBody: false };
}

/** A route that is read with a body, because a url is kept in logs. */
export function asks<Fields, Answer>(path: string): Route<Fields, Answer> {
  return { root: "debug", path, hasBody: true };
}

/** A route that changes something with a body. */
export function changes<Fields, Answer>(path: string): Route<Fields, Answer> {
  return { root: "operations", path, hasBody: true };
}

const answerWithinMs = 20_000;
// Far more pages than any service has. A service that goes on beyond this is not Kenri.
const maxPages = 100_000;

/**
 * The operator routes of one service. Answers are typed by the service's schemas but not checked
 * against them, which would load the code of the service. An answer of another shape is no danger:
 * everything that is printed is made printable, and `ops` reports whatever goes wrong with it.
 */
export class ServiceApi {
  readonly name: string;
  readonly #url: string;
  readonly #token: string | undefined;

  constructor(name: string, url: string, token: string | undefined) {
    this.name = name;
    this.#url = url;
    this.#token = token;
  }

  async ask<Fields extends object, Answer>(
    route: Route<Fields, Answer>,
    fields: NoInfer<Fields>,
  ): Promise<Answer> {
    return await this.#ask(route, Object.fromEntries(Object.entries(fields))) as Answer;
  }

  /** All pages; `fields` is called again before each. */
  async *pages<Fields extends object, Answer extends { next_cursor?: string | undefined }>(
    route: Route<Fields, Answer>,
    fields: () => NoInfer<Fields>,
  ): AsyncGenerator<Answer> {
    const cursors = new Set<string | undefined>([undefined]);
    let cursor: string | undefined;
    do {
      const page = await this.ask(route, { ...fields(), cursor });
      yield page;
      cursor = page.next_cursor;
      if (cursor === undefined) return;
      this.mustAdvance(!cursors.has(cursor) && cursors.size < maxPages);
      cursors.add(cursor);
    } while (true);
  }

  /** For a request that is repeated until the service reports that it is complete. */
  mustAdvance(advances: boolean): void {
    if (!advances) throw this.#unreachable("does not finish: it makes no progress");
  }

  async #ask(
    { root, path, hasBody }: Route<never, unknown>,
    fields: Record<string, unknown>,
  ): Promise<unknown> {
    const url = `${this.#url.replace(/\/$/, "")}/${root}/${this.name}/${path}`;
    const response = await fetch(url + (hasBody ? "" : queryOf(fields)), {
      method: hasBody ? "POST" : "GET",
      headers: {
        ...(hasBody ? { "Content-Type": "application/json" } : {}),
        ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
      },
      signal: AbortSignal.timeout(answerWithinMs),
      redirect: "error", // nobody else may get the credential or the request
      ...(hasBody ? { body: JSON.stringify(fields) } : {}),
    }).catch((error) => {
      throw this.#unreachable(`can't be reached: ${error.message}`);
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    if (response.status === 409 && root === "operations") {
      throw new Refused(`${this.name}: ${answer.message}`);
    }
    if (response.status === 400) throw new UsageError(`${this.name}: ${answer.message}`);
    throw this.#unreachable(problemOf(response, answer, this.name));
  }

  #unreachable(problem: string): Unreachable {
    return new Unreachable(`${this.name} at ${this.#url} ${problem}`);
  }
}

function queryOf(fields: Record<string, unknown>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, `${value}`]));
  return search.size > 0 ? `?${search}` : "";
}

function problemOf(
  { status }: Response,
  { message }: { message?: string },
  service: string,
): string {
  switch (status) {
    case 401:
    case 403:
      return `refused the request: ${message}. Give a credential with --token or KENRI_TOKEN`;
    case 404:
      return "shows nothing to operators. Enable their routes with " +
        `${environmentName(`${service}.debug.enabled`)}=true`;
    default:
      return `answered with status ${status}: ${message ?? "no reason given"}`;
  }
}
