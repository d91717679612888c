import { UsageError } from "./command.ts";

/** Exit code 3: a service could not be asked, or would not answer. What was asked may or may not be done. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

const answerWithinMs = 20_000;

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

  /** Page by page, to the end. */
  // deno-lint-ignore no-explicit-any
  async *changePages(path: string, body: Record<string, unknown>): AsyncGenerator<any> {
    let page: { next_cursor?: string } | undefined;
    while (!page || page.next_cursor !== undefined) {
      page = await this.change(path, { ...body, cursor: page?.next_cursor });
      yield page;
    }
  }

  async #ask(path: string, body?: Record<string, unknown>): Promise<unknown> {
    const response = await fetch(this.#url + path, {
      method: body ? "POST" : "GET",
      headers: {
        ...(body ? { "Content-Type": "application/json" } : {}),
        ...(this.#token ? { Authorization: `Bearer ${this.#token}` } : {}),
      },
      signal: AbortSignal.timeout(answerWithinMs),
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
