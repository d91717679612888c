// The entitlement database on a server of its own, for tests that take the server away.
import { migrate } from "../migrations/migrate.ts";
import { type PostgresServer, startPostgres } from "../tools/servers/postgres.ts";
import { folderOf } from "./databases.ts";

export interface OwnDatabase extends AsyncDisposable {
  server: PostgresServer;
  ownerUrl: string;
  serviceUrl: string;
}

export async function ownDatabase(): Promise<OwnDatabase> {
  const server = await startPostgres();
  const ownerUrl = server.url.replace(/postgres$/, "entitlement");
  const serviceUrl = ownerUrl.replace("postgres@", "kenri_entitlement:test@");
  await migrate({ folder: folderOf("entitlement"), ownerUrl, serviceUrl, say: () => {} });
  return { server, ownerUrl, serviceUrl, [Symbol.asyncDispose]: () => server.close() };
}
