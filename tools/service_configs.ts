// The settings of the services, for tools that need the schemas and not only the names.
import type { z } from "zod";
import type { Read } from "../shared/process/program.ts";
import type {
  DatabaseConfig,
  NatsConfig,
  RedisConfig,
  ServiceConfig,
} from "../shared/process/service_settings.ts";
import { serviceNames } from "./services.ts";

type Always = Pick<ServiceConfig, "http" | "shutdownGraceMs">;

/** What `NAME/config.ts` of each service exports. */
export interface ServiceConfigs {
  schema: z.ZodObject;
  /** Throws SettingsError with all problems. */
  readConfig(
    read: Read,
  ): Always & Partial<ServiceConfig & DatabaseConfig & NatsConfig & RedisConfig>;
}

export const configs: Record<string, ServiceConfigs> = {};
for (const name of serviceNames) configs[name] = await import(`../${name}/config.ts`);
