// The settings of the services, for tools that need the schemas and not only the names.
import type { z } from "zod";
import type { Read } from "../shared/process/program.ts";
import type { HttpOptions } from "../shared/http/serve.ts";
import { serviceNames } from "./services.ts";

/** What `NAME/config.ts` of each service exports. */
export interface ServiceConfigs {
  schema: z.ZodObject;
  /** Throws SettingsError with all problems. */
  readConfig(read: Read): { http: HttpOptions; shutdownGraceMs: number };
}

export const configs: Record<string, ServiceConfigs> = {};
for (const name of serviceNames) configs[name] = await import(`../${name}/config.ts`);
