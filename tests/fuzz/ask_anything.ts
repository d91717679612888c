// Asks a service requests that are generated from its /openapi.json, and checks each answer.
import assert from "node:assert/strict";
import fc from "fast-check";
import { scopes } from "../../proto/scopes.ts";
import { newToken } from "../../shared/access/tokens.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, call } from "../support/api.ts";
import { inTime } from "../../tools/servers/wait.ts";
import { fuzz } from "./fuzz.ts";
import { assertDescribed, type Route, routesOf } from "./openapi.ts";
import { type FuzzRequest, requestTo } from "./requests.ts";

const all = newClient("all", ...scopes);
const some = [newClient("scraper", "metrics:read"), newClient("reader", "entitlements:read")];
export const credentials = tokensOf(all, ...some);
type Credential = fc.Arbitrary<Record<string, string>>;

const usually = fc.constant(bearer(all.token));
const seldom = fc.constantFrom(
  ...some.map(({ token }) => bearer(token)),
  bearer(newToken()),
  {},
);
const anyCredential: Credential = fc.oneof({ weight: 6, arbitrary: usually }, {
  weight: 1,
  arbitrary: seldom,
});

const atOnce = 25;
const hangsMs = 20_000;

interface Asking {
  runs: number;
  credential?: Credential;
  without?: string[]; // names of routes
  rare?: string[]; // statuses that need a certain state and may not be seen, of all routes or of one
  look?(request: FuzzRequest, answer: Answer): void;
}

export async function askAnything(
  url: string,
  { runs, credential = anyCredential, without = [], rare = [], look = () => {} }: Asking,
): Promise<void> {
  const known = new Known();
  const described = (await routesOf(url)).filter(({ name }) => !without.includes(name));
  const routes = new Map(described.map((route) => [route.name, route]));
  const seen = new Map([...routes.keys()].map((name) => [name, new Set<number>()]));
  const askAtOnce = async (requests: FuzzRequest[]) => {
    const answered = Promise.all(requests.map((request) => ask(url, known.filled(request))));
    const answers = await inTime("all are answered", answered, hangsMs);
    for (const [i, request] of requests.entries()) {
      const answer = answers[i] as Answer;
      const method = request.method.toUpperCase();
      assertDescribed(routeOf(routes, request), method, answer);
      seen.get(request.route)?.add(answer.status);
      known.remember(answer);
      look(request, answer);
    }
  };
  const anyRequest = fc.oneof(
    ...[...routes.values()].map((route) => ({
      weight: route.parameters.length > 0 || route.body ? 4 : 1,
      arbitrary: requestWith(credential, route),
    })),
  );
  const requests = fc.array(anyRequest, { minLength: atOnce, maxLength: atOnce });
  await fuzz(fc.asyncProperty(requests, askAtOnce), runs);
  for (const [name, route] of routes) {
    const isRare = (status: number) =>
      rare.includes(`${status}`) || rare.includes(`${name} ${status}`);
    const toSee = statusesToSee(route).filter((status) => !isRare(status));
    const unseen = () => toSee.filter((status) => !seen.get(name)?.has(status));
    // Which statuses a route has answered by now is chance: ask it alone until each was seen.
    for (let round = 0; unseen().length > 0 && round < 100; round++) {
      await askAtOnce(fc.sample(requestWith(credential, route), atOnce));
    }
    assert.deepEqual(unseen(), [], `${name} never answered these, so its requests vary too little`);
  }
}

/** Garbage may have the method of another route of the same path. */
function routeOf(routes: Map<string, Route>, { route, method }: FuzzRequest): Route {
  const own = routes.get(route) as Route;
  const asked = method.toLowerCase().replace("head", "get");
  return routes.get(`${asked} ${own.path}`) ?? own;
}

/** The newest values of answers by their names, so that later requests can name what exists. */
class Known {
  readonly #values: Record<string, string[]> = {};

  remember({ json }: Answer): void {
    for (const [name, value] of Object.entries(json ?? {})) {
      if (typeof value !== "string") continue;
      this.#values[name] = [value, ...this.#values[name] ?? []].slice(0, 50);
    }
  }

  filled(request: FuzzRequest): FuzzRequest {
    const path = request.path.replaceAll(
      /\{(\w+)\}/g,
      (_, name) => encodeURIComponent(this.#one(name)),
    );
    const { body } = request;
    if (typeof body !== "string") return { ...request, path };
    return {
      ...request,
      path,
      body: body.replace(/(?<=")\{(\w+_id)\}(?=")/, (_, name) => this.#one(name)),
    };
  }

  #one(name: string): string {
    const values = this.#values[name] ?? ["ann"];
    return values[Math.floor(Math.random() * values.length)] ?? "";
  }
}

function requestWith(credential: Credential, route: Route): fc.Arbitrary<FuzzRequest> {
  return fc.record({ request: requestTo(route), credential }).map((
    { request, credential },
  ) => ({ ...request, headers: { ...credential, ...request.headers } }));
}

/** None of an operator's route, because its requests often need rows that exist. */
function statusesToSee({ name, answers }: Route): number[] {
  if (/ \/(debug|operations)\//.test(name)) return [];
  return [...answers.keys()].filter((status) => status < 500 && status !== 408);
}

function ask(url: string, { path, method, headers, body }: FuzzRequest): Promise<Answer> {
  const sent = body === undefined ? {} : { body };
  return call(url + path, { method, headers, redirect: "manual", ...sent });
}
