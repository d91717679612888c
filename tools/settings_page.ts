// deno task settings:page: writes the tables of docs/settings.md from the schemas of the settings.
// With --check it only reports a page that is not up to date.
import type { z } from "zod";
import { schema as migrations } from "../migrations/config.ts";
import { environmentName } from "../shared/process/program.ts";
import { tableOf, writeTables } from "./page_tables.ts";
import { schema as provision } from "./provision/config.ts";
import { configs } from "./service_configs.ts";

const settings: Record<string, z.ZodType> = Object.assign(
  {},
  provision.shape,
  migrations.shape,
  ...Object.values(configs).map(({ schema }) => schema.shape),
);

const services = Object.keys(configs);

function defaultOf(setting: z.ZodType): string {
  const { type, defaultValue } = setting.def as { type: string; defaultValue?: unknown };
  const shownDefault = setting.meta()?.["shownDefault"];
  if (typeof shownDefault === "string") return shownDefault;
  if (type === "prefault") return defaultValue === "" ? "empty" : String(defaultValue);
  return type === "optional" ? "not set" : "required";
}

function tableFor(belongs: (key: string) => boolean): string {
  const rows = Object.entries(settings).filter(([key]) => belongs(key)).sort(byKey)
    .map(([key, setting]) => {
      if (!setting.description) throw new Error(`The setting ${key} has no description`);
      const keyAndName = [`\`${key}\``, `\`${environmentName(key)}\``];
      return [...keyAndName, defaultOf(setting), setting.description];
    });
  return tableOf(["key", "environment variable", "default", "meaning"], rows);
}

function byKey([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}

const serviceOf = (key: string) => services.find((service) => key.startsWith(`${service}.`));
await writeTables("settings.md", {
  "all services": tableFor((key) => !serviceOf(key)),
  ...Object.fromEntries(
    services.map((service) => [service, tableFor((key) => serviceOf(key) === service)]),
  ),
}, "settings:page");
