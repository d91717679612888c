import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Authenticator } from "@kenri/shared/access/authenticator.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import type { Checks } from "@kenri/shared/http/common_routes.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { statusOfCode } from "./errors.ts";

export interface AppParts {
  checks: Checks;
  authenticator: Authenticator;
  log: Log;
}

export function gatewayApp({ checks, authenticator, log }: AppParts): OpenAPIHono {
  return createApp({
    title: "Kenri gateway",
    errors: statusOfCode,
    checks,
    authenticator,
    log,
  });
}
