import { lookup } from "node:dns";

// The addresses of names, as the machine resolves them, from its hosts file or by DNS.

export type Resolve = (name: string) => Promise<string[]>;

const underWay = new Map<string, Promise<string[]>>();

/**
 * Sends to one name share a look-up: it can't be ended early, and occupies a thread until the name
 * servers answer. The result is not kept, so the next send asks again.
 */
export function resolve(name: string): Promise<string[]> {
  const begun = underWay.get(name);
  if (begun) return begun;
  const looking = lookUp(name).finally(() => underWay.delete(name));
  underWay.set(name, looking);
  return looking;
}

// IPv4 comes first, because more machines can reach it.
function lookUp(name: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  lookup(name, { all: true, order: "ipv4first" }, (error, found) => {
    if (error) reject(error);
    else resolve(found.map(({ address }) => address));
  });
  return promise;
}
