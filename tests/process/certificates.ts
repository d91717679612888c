// A private authority and the certificates it signs. The X.509 is written by hand, so that tests
// need no program and no package for it, and has only what they use: P-256, names, addresses,
// times.
import { Buffer } from "node:buffer";
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Certificate {
  cert: string; // as PEM
  key: string;
}

export interface Authority extends Certificate {
  /** Issues a certificate for a server, or for the role that its subject names. It is valid since yesterday. */
  issue(wanted: { name: string; hosts?: string[]; days?: number }): Certificate;
}

export function newAuthority(name = "Test authority"): Authority {
  const { publicKey, privateKey } = newKeys();
  const of = (content: Omit<Content, "issuer">, key: KeyObject): Certificate => ({
    cert: pem("CERTIFICATE", signed({ ...content, issuer: name }, privateKey)),
    key: key.export({ type: "pkcs8", format: "pem" }).toString(),
  });
  const isAuthority = extension("551d13", sequence(tlv(0x01, Buffer.from([0xff]))), true);
  return {
    ...of({ subject: name, publicKey, days: 30, extensions: [isAuthority] }, privateKey),
    issue({ name, hosts = [], days = 2 }) {
      const keys = newKeys();
      const names = extension("551d11", sequence(...hosts.map(generalName)));
      const extensions = hosts.length > 0 ? [names] : [];
      return of({ subject: name, publicKey: keys.publicKey, days, extensions }, keys.privateKey);
    },
  };
}

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

interface Content {
  issuer: string;
  subject: string;
  publicKey: KeyObject;
  days: number; // from now; below zero it has expired
  extensions: Buffer[];
}

function signed({ issuer, subject, publicKey, days, extensions }: Content, key: KeyObject): Buffer {
  const algorithm = sequence(objectId("2a8648ce3d040302")); // ECDSA with SHA-256
  const dayMs = 86_400_000;
  const content = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))), // version 3
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])), // serial number
    algorithm,
    distinguishedName(issuer),
    sequence(time(Date.now() - 2 * dayMs), time(Date.now() + days * dayMs)),
    distinguishedName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    ...(extensions.length > 0 ? [tlv(0xa3, sequence(...extensions))] : []),
  );
  return sequence(content, algorithm, bits(sign("sha256", content, key)));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  const isCritical = critical ? [tlv(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...isCritical, tlv(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(objectId("550403"), tlv(0x0c, Buffer.from(commonName)))));
}

function generalName(host: string): Buffer {
  const isAddress = /^[\d.]+$/.test(host);
  return isAddress
    ? tlv(0x87, Buffer.from(host.split(".").map(Number)))
    : tlv(0x82, Buffer.from(host));
}

function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, "").slice(2, 14);
  return tlv(0x17, Buffer.from(`${digits}Z`));
}

const objectId = (hex: string) => tlv(0x06, Buffer.from(hex, "hex"));
const bits = (content: Buffer) => tlv(0x03, Buffer.concat([Buffer.from([0]), content]));
const sequence = (...contents: Buffer[]) => tlv(0x30, ...contents);

/** Tag, length, value. */
function tlv(tag: number, ...contents: Buffer[]): Buffer {
  const value = Buffer.concat(contents);
  const { length } = value;
  const short = length < 0x80 ? [length] : undefined;
  const long = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...(short ?? long)]), value]);
}

function pem(kind: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g)?.join("\n");
  return `-----BEGIN ${kind}-----\n${lines}\n-----END ${kind}-----\n`;
}
