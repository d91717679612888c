// What a service describes in its /openapi.json.
import { call } from "../support/api.ts";

// deno-lint-ignore no-explicit-any
export type Json = any;

export interface Operation {
  name: string;
  path: string;
  method: string; // in lower case
  described: Json;
}

export async function describedBy(url: string): Promise<{ api: Json; operations: Operation[] }> {
  const { json: api } = await call(`${url}/openapi.json`);
  const operations = Object.entries<Json>(api.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, described]) => ({
      name: `${method} ${path}`,
      path,
      method,
      described,
    }))
  );
  return { api, operations };
}
