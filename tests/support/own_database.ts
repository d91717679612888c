// A database on a server of its own, for tests that take the server away.
import { migrate } from "../../migrations/migrate.ts";
import { type PostgresServer, startPostgres } from "../../tools/servers/postgres.ts";
import { folderOf, type Service } from "./databases.ts";

export interface OwnDatabase extends AsyncDisposable {
  server: PostgresServer;
  ownerUrl: string;
  serviceUrl: string;
}

export async function ownDatabase(service: Service = "entitlement"): Promise<OwnDatabase> {
  const server = await startPostgres();
  const ownerUrl = server.urlOf({ database: service });
  const serviceUrl = server.urlOf({ database: service, user: `kenri_${service}` });
  await migrate({ folder: folderOf(service), ownerUrl, serviceUrl, say: () => {} });
  return { server, ownerUrl, serviceUrl, [Symbol.asyncDispose]: () => server.close() };
}
