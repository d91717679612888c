// An issuer of JWTs that publishes its keys over HTTP.
import { exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import type { Settings } from "../../tools/servers/service_process.ts";

export interface Issuer extends AsyncDisposable {
  settings: Settings;
  fetches: number; // of the published keys
  down: boolean; // answers with 503
  publicPem: string; // of the first key
  // From then on it signs with a new key, and publishes only that one.
  rotate(): Promise<void>;
  sign(claims: Claims): Promise<string>;
}

export interface Claims extends JWTPayload {
  kid?: string;
  alg?: string;
  typ?: string; // of the header
  inSeconds?: number; // when it expires; undefined makes a token that never does
}

export const audience = "kenri";

interface Key {
  kid: string;
  jwk: JWK;
  privateKey: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];
  publicPem: string;
}

export async function startIssuer(algorithm = "ES256"): Promise<Issuer> {
  let key = await newKey(algorithm);
  const issuer: Issuer = {
    settings: {},
    fetches: 0,
    down: false,
    publicPem: key.publicPem,
    rotate: async () => void (key = await newKey(algorithm)),
    sign: ({ kid = key.kid, alg = algorithm, typ, inSeconds, ...claims }) => {
      const jwt = new SignJWT({
        iss: issuer.settings["ACCESS_JWT_ISSUER"] ?? "",
        aud: audience,
        ...claims,
      })
        .setProtectedHeader({ alg, kid, ...(typ === undefined ? {} : { typ }) });
      if (inSeconds !== undefined) jwt.setExpirationTime(new Date(Date.now() + inSeconds * 1_000));
      return jwt.sign(key.privateKey);
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    issuer.fetches++;
    if (issuer.down) return new Response("not now", { status: 503 });
    return Response.json({ keys: [key.jwk] });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  issuer.settings = {
    ACCESS_JWT_ISSUER: url,
    ACCESS_JWT_AUDIENCE: audience,
    ACCESS_JWT_JWKS_URL: `${url}/keys`,
  };
  return issuer;
}

async function newKey(alg: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const kid = crypto.randomUUID();
  const jwk = { ...await exportJWK(publicKey), kid, alg, use: "sig" };
  return { kid, jwk, privateKey, publicPem: await exportSPKI(publicKey) };
}
