import { z } from "zod";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { host, port } from "@kenri/shared/process/setting_kinds.ts";
import type { Listed } from "./service.ts";

// ops looks for the services where their own settings say that they listen, with the same defaults.

const common = {
  "kenri.token": z.string().optional(),
  "kenri.without": z.string().optional(),
  "user": z.string().optional(),
  "logname": z.string().optional(),
};

function addressSettings(defaultPort: number): z.ZodRawShape {
  return {
    "http.host": host().prefault("127.0.0.1"),
    "http.port": port().prefault(`${defaultPort}`),
  };
}

export interface Settings {
  urlOf: (service: Listed) => string;
  token: string | undefined;
  without: string | undefined; // services that are not deployed
  user: string | undefined;
}

export function readSettings(services: Listed[], read: typeof environment = environment): Settings {
  const addresses = services.map(({ name, port }) => prefixed(name, addressSettings(port)));
  const schema: z.ZodRawShape = Object.assign({}, ...addresses);
  const settings = parseSettings(z.object({ ...schema, ...common }), read);
  const address: Record<string, unknown> = settings;
  return {
    urlOf: ({ name }) => {
      const host = `${address[`${name}.http.host`]}`;
      const port = address[`${name}.http.port`];
      return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    },
    token: settings["kenri.token"],
    without: settings["kenri.without"],
    user: settings["user"] ?? settings["logname"],
  };
}
