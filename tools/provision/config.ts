import type { NatsServers } from "../../shared/nats/connection.ts";
import type { NatsUse } from "../../shared/nats/nats_use.ts";
import { natsTlsIsUsed, tlsSettings, tlsSource } from "../../shared/postgres/tls.ts";
import { environmentName } from "../../shared/process/program.ts";
import { natsUrls } from "../../shared/process/server_urls.ts";
import { number } from "../../shared/process/setting_kinds.ts";
import { parseSettings, prefixed, SettingsError } from "../../shared/process/settings.ts";
import { z } from "zod";
import { streams as all } from "./services.ts";

/** What `NAME/stream_settings.ts` of a service exports. */
export interface ServiceStreams {
  streamSettings: z.ZodRawShape;
  // deno-lint-ignore no-explicit-any -- each service has a type of its own for its settings
  natsUse(settings: any): NatsUse;
}

type Services = Record<string, ServiceStreams>;
type Values = Record<string, unknown>;

const ownSettings = {
  "nats.url": natsUrls().optional(),
  "nats.provision.url": natsUrls().optional().meta({
    description: "NATS user that may make streams; only `deno task provision` reads it",
    shownDefault: "`nats.url`",
  }),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1"),
  ...prefixed("nats", tlsSettings),
};

const urlIsThere = z.refine<Values>(
  (values) => (values["nats.provision.url"] ?? values["nats.url"]) !== undefined,
  { path: ["nats.provision.url"], message: "is required, or NATS_URL", when: () => true },
);

// Each service verifies the streams that it uses, so one of two that differ would not start.
function allWantTheSame(keys: string[]): z.core.$ZodCheck<Values>[] {
  const windows = keys.filter((key) => key.endsWith(".duplicate-window"));
  const users = windows.map((key) => key.replace(".duplicate-window", ""));
  return users.flatMap((other, at) =>
    users.slice(0, at).flatMap((one) =>
      ["subject", "duplicate-window"].map((setting) =>
        z.refine<Values>(
          (values) =>
            values[`${one}.stream`] !== values[`${other}.stream`] ||
            values[`${one}.${setting}`] === values[`${other}.${setting}`],
          {
            path: [`${other}.${setting}`],
            message: `must be that of ${environmentName(`${one}.${setting}`)}, ` +
              "because both are about one stream",
            when: () => true,
          },
        )
      )
    )
  );
}

export function schemaOf(services: Services): z.ZodObject<typeof ownSettings> {
  const shape: z.ZodRawShape = Object.assign(
    {},
    ...Object.values(services).map(({ streamSettings }) => streamSettings),
  );
  return z.object({ ...shape, ...ownSettings }).check(
    urlIsThere,
    ...natsTlsIsUsed("nats.provision.url"),
    ...natsTlsIsUsed(),
    ...allWantTheSame(Object.keys(shape)),
  );
}

export const schema: z.ZodObject<typeof ownSettings> = schemaOf(all);

export interface ProvisionConfig {
  nats: Required<NatsServers>;
  uses: Record<string, NatsUse>; // by the names of the services
}

export function readConfig(
  read: (name: string) => string | undefined = (name) => Deno.env.get(name),
  services: Services = all,
): ProvisionConfig {
  const settings = parseSettings(schemaOf(services), read);
  const urls = settings["nats.provision.url"] ?? settings["nats.url"] ?? "";
  const uses = Object.fromEntries(
    Object.entries(services).map(([name, { natsUse }]) => [name, natsUse(settings)]),
  );
  const problems = differingSubjects(uses);
  if (problems.length > 0) throw new SettingsError(problems);
  return { nats: { urls, tls: tlsSource("nats", settings) }, uses };
}

// A stream may have subjects from several settings, so those of all services are compared as a whole.
function differingSubjects(uses: Record<string, NatsUse>): string[] {
  const wanted = Object.values(uses).flatMap(({ streams = [], inboxes = [] }) => [
    ...streams,
    ...inboxes.map(({ stream }) => stream),
  ]);
  return [...Map.groupBy(wanted, ({ name }) => name)].flatMap(([name, streams]) => {
    const subjects = streams.map(({ subjects, newSubjects = [] }) =>
      [...subjects, ...newSubjects].toSorted().join(", ")
    );
    const different = [...new Set(subjects)];
    return different.length === 1 ? [] : [
      `The services want stream ${JSON.stringify(name)} with different subjects: ${
        different.join("; ")
      }`,
    ];
  });
}
