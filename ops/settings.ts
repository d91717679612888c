import { z } from "zod";
import { environment, parseSettings } from "@kenri/shared/process/settings.ts";
import { host, port } from "@kenri/shared/process/setting_kinds.ts";
import type { ServiceName } from "./routes.ts";

// ops looks for the services where their own settings say that they listen, with the same defaults.

const schema = z.object({
  "entitlement.http.host": host().prefault("127.0.0.1"),
  "entitlement.http.port": port().prefault("8080"),
  "notification.http.host": host().prefault("127.0.0.1"),
  "notification.http.port": port().prefault("8081"),
  "kenri.token": z.string().optional(),
  "user": z.string().optional(),
  "logname": z.string().optional(),
});

export interface Settings {
  urls: Record<ServiceName, string>;
  token: string | undefined;
  user: string | undefined;
}

export function readSettings(read: typeof environment = environment): Settings {
  const settings = parseSettings(schema, read);
  const url = (service: ServiceName) => {
    const host = settings[`${service}.http.host`];
    const name = host.includes(":") ? `[${host}]` : host;
    return `http://${name}:${settings[`${service}.http.port`]}`;
  };
  return {
    urls: { entitlement: url("entitlement"), notification: url("notification") },
    token: settings["kenri.token"],
    user: settings["user"] ?? settings["logname"],
  };
}
