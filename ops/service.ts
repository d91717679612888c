import { UsageError } from "./command.ts";

/** Exit code 3: a service could not be asked, or would not answer. What was asked may or may not be done. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

const answerWithinMs = 20_000;
// Far more pages than there are; a service that never ends is not ours.
const maxPages = 100_000;

/** One of the two services, over HTTP. */
export class Service {
  readonly name: "entitlement" | "notification";
  readonly #url: string;
  readonly #token: string | undefined;

  constructor(name: "entitlement" | "notification", url: string, token: string | undefined) {
    this.name = name;
    this.#url = url.replace(/\/$/, "");
    this.#token = token;
  }

  /** Of what it shows under /debug. */
  // deno-lint-ignore no-explicit-any
  look(path: string, query: Record<string, string | undefined> = {}): Promise<any> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given as [string, string][]);
    return this.#ask(`/debug/${this.name}/${path}${search.size > 0 ? `?${search}` : ""}`);
  }

  // deno-lint-ignore no-explicit-any
  change(path: string, body: Record<string, unknown>): Promise<any> {
    return this.#ask(`/operations/${this.name}/${path}`, body);
  }

  /** Page by page, to the end; the query is asked for anew before each. */
  // deno-lint-ignore no-explicit-any
  lookPages(path: string, query: () => Record<string, string | undefined>): AsyncGenerator<any> {
    return this.#pages((cursor) => this.look(path, { ...query(), cursor }));
  }

  // deno-lint-ignore no-explicit-any
  changePages(path: string, body: () => Record<string, unknown>): AsyncGenerator<any> {
    return this.#pages((cursor) => this.change(path, { ...body(), cursor }));
  }

  async *#pages<Page extends { next_cursor?: string }>(
    ask: (cursor: string | undefined) => Promise<Page>,
  ): AsyncGenerator<Page> {
    const cursors = new Set<string | undefined>([undefined]);
    let page: Page | undefined;
    do {
      page = await ask(page?.next_cursor);
      yield page;
      if (page.next_cursor === undefined) return;
      this.mustAdvance(!cursors.has(page.next_cursor) && cursors.size < maxPages);
      cursors.add(page.next_cursor);
    } while (true);
  }

  /** For what goes on until the service says that it is complete. */
  mustAdvance(advances: boolean): void {
    if (advances) return;
    throw new Unreachable(`${this.name} at ${this.#url} goes on without coming to an end`);
  }

  async #ask(path: string, body?: Record<string, unknown>): Promise<unknown> {
    const response = await fetch(this.#url + path, {
      method: body ? "POST" : "GET",
      headers: {
        ...(body ? { "Content-Type": "application/json" } : {}),
        ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
      },
      signal: AbortSignal.timeout(answerWithinMs),
      // Nobody else may get the credential or the request.
      redirect: "error",
      ...(body ? { body: JSON.stringify(body) } : {}),
    }).catch((error) => {
      throw new Unreachable(`${this.name} at ${this.#url} can't be reached: ${error.message}`);
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    if (response.status === 400) throw new UsageError(`${this.name}: ${answer.message}`);
    throw new Unreachable(`${this.name} at ${this.#url} ${this.#problem(response, answer)}`);
  }

  #problem({ status }: Response, { message }: { message?: string }): string {
    switch (status) {
      case 401:
      case 403:
        return `refuses this: ${message}. Give a credential with --token or KENRI_TOKEN`;
      case 404:
        return "shows nothing to operators. Switch it on with " +
          `${this.name.toUpperCase()}_DEBUG_ENABLED=true`;
      default:
        return `answers ${status}: ${message ?? "no reason given"}`;
    }
  }
}
