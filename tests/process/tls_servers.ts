// PostgreSQL, NATS and Redis with TLS and the certificates of a test.
import { type NatsServer, startNats } from "../../tools/servers/nats.ts";
import { type PostgresServer, startPostgres } from "../../tools/servers/postgres.ts";
import { makeTempFolder, unprivilegedUser } from "../../tools/servers/other_user.ts";
import { newPassword } from "../../tools/servers/password.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { type RedisServer, startRedis } from "../../tools/servers/redis.ts";
import type { Certificate } from "./certificates.ts";

export interface TlsServer<Server> extends AsyncDisposable {
  server: Server;
  /** Takes effect at the next start. */
  present(certificate: Certificate): Promise<void>;
}

interface Options {
  certificate: Certificate;
  clientAuthority?: string; // if set, clients need a certificate of this authority
}

/** Only the administrator may connect without TLS. */
export async function startTlsPostgres(options: Options): Promise<TlsServer<PostgresServer>> {
  const files = await makeFiles(options, await unprivilegedUser());
  const { clientAuthority } = options;
  await files.write(
    "hba",
    "host all postgres 127.0.0.1/32 scram-sha-256\n" +
      `hostssl all all all ${clientAuthority ? "cert" : "scram-sha-256"}\n`,
  );
  const server = await startPostgres({
    settings: {
      hba_file: `${files.path}/hba`,
      ssl: "on",
      ssl_cert_file: `${files.path}/cert`,
      ssl_key_file: `${files.path}/key`,
      ...(clientAuthority ? { ssl_ca_file: `${files.path}/authority` } : {}),
    },
  });
  return together(server, files);
}

/** All servers have the same password, because a client has one for all. */
const natsPassword = newPassword();

export async function startTlsNats(options: Options): Promise<TlsServer<NatsServer>> {
  const files = await makeFiles(options);
  const verify = `ca_file: "${files.path}/authority", verify: true`;
  const server = await startNats({
    password: natsPassword,
    settings: `tls { cert_file: "${files.path}/cert", key_file: "${files.path}/key", ${
      options.clientAuthority ? verify : ""
    } }`,
  });
  return together(server, files);
}

export interface TlsRedis extends TlsServer<RedisServer> {
  /** With TLS; `host` is an address or a name. */
  urlAt(host: string): string;
}

/** The test itself connects without TLS, to another port. */
export async function startTlsRedis(options: Options): Promise<TlsRedis> {
  const files = await makeFiles(options);
  const port = freePort();
  const server = await startRedis({
    settings: `tls-port ${port}
tls-cert-file ${files.path}/cert
tls-key-file ${files.path}/key
tls-auth-clients ${options.clientAuthority ? "yes" : "no"}
${options.clientAuthority ? `tls-ca-cert-file ${files.path}/authority` : ""}`,
  });
  const urlAt = (host: string) =>
    server.url.replace("redis:", "rediss:").replace(`127.0.0.1:${server.port}`, `${host}:${port}`);
  return { ...together(server, files), urlAt };
}

interface Files extends AsyncDisposable {
  path: string;
  write(name: string, text: string): Promise<void>;
}

async function makeFiles(
  { certificate, clientAuthority }: Options,
  user?: { uid: number; gid: number },
): Promise<Files> {
  const path = await makeTempFolder({ prefix: "kenri-tls-" }, user);
  const give = async (file: string) => {
    if (user) await Deno.chown(file, user.uid, user.gid);
  };
  const write = async (name: string, text: string) => {
    await Deno.writeTextFile(`${path}/${name}`, text, { mode: 0o600 });
    await give(`${path}/${name}`);
  };
  await write("cert", certificate.cert);
  await write("key", certificate.key);
  if (clientAuthority) await write("authority", clientAuthority);
  return { path, write, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

function together<Server extends AsyncDisposable>(server: Server, files: Files): TlsServer<Server> {
  return {
    server,
    present: async ({ cert, key }) => {
      await files.write("cert", cert);
      await files.write("key", key);
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
    },
  };
}
