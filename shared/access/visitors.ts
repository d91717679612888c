import type { Context } from "hono";

// People who use a service with a session of their own, in place of callers with a credential. The
// service says which paths are theirs, and who has a session. An Authorization header has no meaning
// there.

export interface Visitors {
  // Paths of the service that are answered without a session.
  publicPaths: ReadonlySet<string>;
  isTheirs(path: string): boolean;
  // Throws unless the request has a valid session. Reads nothing of the body.
  admit(context: Context): Promise<void>;
  // The scheme of the session in the API description.
  cookie: string;
}

declare module "hono" {
  interface ContextVariableMap {
    visitor?: true; // set when the request has a valid session
  }
}
