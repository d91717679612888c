import { type NamedPage, pageUrls } from "../process/setting_kinds.ts";
import { type Prefixed, prefixed } from "../process/settings.ts";
import type { z } from "zod";

// The settings of a service that has a console.

const fields = {
  "console.peer-url": pageUrls().optional().describe(
    "Consoles of other services, for links: a URL, or several as `name=URL`, separated by commas",
  ),
};

export interface ConsoleConfig {
  consolePeers: NamedPage[]; // the consoles of other services, for links
}

function settings<Service extends string>(service: Service): Prefixed<Service, typeof fields> {
  return prefixed(service, fields);
}

function config(peers: z.output<typeof fields["console.peer-url"]>): ConsoleConfig {
  return { consolePeers: peers ?? [] };
}

export const consoles = { settings, config };
