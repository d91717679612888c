import { UsageError } from "./command.ts";
import type { Answer, Fields, PagedPath, Path, ServiceName } from "./routes.ts";

/**
 * Exit code 3: a service did not answer or refused. The request may or may not have had an effect.
 */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

const answerWithinMs = 20_000;
// Far more pages than any service has. A service that goes on beyond this is not Kenri.
const maxPages = 100_000;

/**
 * The operator routes of both services. Answers are typed by the services' schemas but not checked
 * against them, which would load the code of the services. An answer of another shape is no danger:
 * everything that is printed is made printable, and `ops.ts` reports whatever goes wrong with it.
 */
export class Api {
  readonly #urls: Record<ServiceName, string>;
  readonly #token: string | undefined;

  constructor(urls: Record<ServiceName, string>, token: string | undefined) {
    this.#urls = urls;
    this.#token = token;
  }

  /**
   * A path under /debug is read with a query, one under /operations changes something with a body.
   */
  async ask<Of extends Path>(path: Of, fields: Fields<Of>): Promise<Answer<Of>> {
    return await this.#ask(path, fields) as Answer<Of>;
  }

  /** All pages; `fields` is called again before each. */
  async *pages<Of extends PagedPath>(
    path: Of,
    fields: () => Fields<Of>,
  ): AsyncGenerator<Answer<Of>> {
    const cursors = new Set<string | undefined>([undefined]);
    let cursor: string | undefined;
    do {
      const page = await this.ask(path, { ...fields(), cursor });
      yield page;
      cursor = page.next_cursor;
      if (cursor === undefined) return;
      this.mustAdvance(path, !cursors.has(cursor) && cursors.size < maxPages);
      cursors.add(cursor);
    } while (true);
  }

  /** For a request that is repeated until the service reports that it is complete. */
  mustAdvance(path: Path, advances: boolean): void {
    if (!advances) {
      throw new Unreachable(`${this.#name(path)} does not finish: it makes no progress`);
    }
  }

  async #ask(path: Path, fields: Record<string, unknown>): Promise<unknown> {
    const root = this.#urls[serviceOf(path)].replace(/\/$/, "");
    const isChange = path.startsWith("/operations/");
    const response = await fetch(root + path + (isChange ? "" : queryOf(fields)), {
      method: isChange ? "POST" : "GET",
      headers: {
        ...(isChange ? { "Content-Type": "application/json" } : {}),
        ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
      },
      signal: AbortSignal.timeout(answerWithinMs),
      redirect: "error", // nobody else may get the credential or the request
      ...(isChange ? { body: JSON.stringify(fields) } : {}),
    }).catch((error) => {
      throw new Unreachable(`${this.#name(path)} can't be reached: ${error.message}`);
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    if (response.status === 400) throw new UsageError(`${serviceOf(path)}: ${answer.message}`);
    throw new Unreachable(`${this.#name(path)} ${problemOf(response, answer, serviceOf(path))}`);
  }

  #name(path: Path): string {
    const service = serviceOf(path);
    return `${service} at ${this.#urls[service]}`;
  }
}

function serviceOf(path: Path): ServiceName {
  return /^\/\w+\/entitlement\//.test(path) ? "entitlement" : "notification";
}

function queryOf(fields: Record<string, unknown>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, `${value}`]));
  return search.size > 0 ? `?${search}` : "";
}

function problemOf(
  { status }: Response,
  { message }: { message?: string },
  service: ServiceName,
): string {
  switch (status) {
    case 401:
    case 403:
      return `refused the request: ${message}. Give a credential with --token or KENRI_TOKEN`;
    case 404:
      return "shows nothing to operators. Enable their routes with " +
        `${service.toUpperCase()}_DEBUG_ENABLED=true`;
    default:
      return `answered with status ${status}: ${message ?? "no reason given"}`;
  }
}
