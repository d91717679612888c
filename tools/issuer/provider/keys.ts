// The key with which the issuer signs, and tokens that it would not make by itself.
import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import type { Forged } from "../faults.ts";

export const algorithm = "ES256";

export interface Key {
  kid: string;
  jwk: JWK; // private
  privateKey: CryptoKey;
}

export async function newKey(): Promise<Key> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const kid = crypto.randomUUID();
  const jwk = { ...await exportJWK(privateKey), kid, alg: algorithm, use: "sig" };
  return { kid, jwk, privateKey };
}

export async function forge(
  { claims, typ = "JWT", by = "own key" }: Forged,
  key: Key,
): Promise<string> {
  const kept = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null));
  if (by === "nobody") return new UnsecuredJWT(kept).encode();
  const { kid, jwk, privateKey } = by === "unpublished key" ? await newKey() : key;
  if (by === "public key as secret") {
    const secret = new TextEncoder().encode(jwk.x);
    return await new SignJWT(kept).setProtectedHeader({ alg: "HS256", kid, typ }).sign(secret);
  }
  const header = { alg: algorithm, kid, typ };
  const token = await new SignJWT(kept).setProtectedHeader(header).sign(privateKey);
  if (by !== "wrong signature") return token;
  const signatureAt = token.lastIndexOf(".") + 1;
  const changed = token[signatureAt] === "A" ? "B" : "A";
  return token.slice(0, signatureAt) + changed + token.slice(signatureAt + 1);
}
