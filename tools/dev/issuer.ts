// The issuer of `deno task dev`, where a developer logs in as one of a few users. There is none if
// GATEWAY_ISSUER names another one.
import * as descriptors from "../../services.ts";
import { defaultIssuerPort, type Issuer, startIssuer } from "../issuer/issuer.ts";
import { type Settings, urlOf } from "./settings.ts";

export const issuerPort = "KENRI_ISSUER_PORT";

type Read = (name: string) => string | undefined;

/** Undefined if there is none. */
export function portOfIssuer(read: Read): string | undefined {
  if (read("GATEWAY_ISSUER") !== undefined) return undefined;
  return read(issuerPort) ?? `${defaultIssuerPort}`;
}

/** As its tokens name it. */
export function urlOfIssuer(read: Read): string | undefined {
  const port = portOfIssuer(read);
  return port && `http://127.0.0.1:${port}`;
}

export async function startDevIssuer(read: Read, settings: Settings): Promise<Issuer | undefined> {
  const port = portOfIssuer(read);
  if (port === undefined) return undefined;
  return await startIssuer({
    port: Number(port),
    clientId: settings["GATEWAY_CLIENT_ID"] ?? "",
    clientSecret: settings["GATEWAY_CLIENT_SECRET"] ?? "",
    backchannel: `${urlOf(descriptors.gateway, settings)}/logout/backchannel`,
  });
}
