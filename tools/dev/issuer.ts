// The issuer of `deno task dev`: where a developer logs in as one of a few users. Another one can be
// named by GATEWAY_ISSUER.

export const issuerPort = "KENRI_ISSUER_PORT";
export const defaultIssuerPort = "8086";

type Read = (name: string) => string | undefined;

export function wantsIssuer(read: Read): boolean {
  return read("GATEWAY_ISSUER") === undefined;
}

export function issuerUrl(read: Read): string {
  return `http://127.0.0.1:${read(issuerPort) ?? defaultIssuerPort}`;
}
