// The tables of a service, without the service: for tests of single statements.
import { type Database, openDatabase } from "../shared/postgres.ts";
import { freshDatabase, type Service } from "./databases.ts";

export interface OpenTables extends AsyncDisposable {
  /** As the service's own role. */
  database: Database;
  ownerUrl: string;
}

export async function openTables(service: Service): Promise<OpenTables> {
  const { serviceUrl, ownerUrl, drop } = await freshDatabase(service);
  const database = openDatabase(serviceUrl, "test");
  const dispose = async () => {
    await database.end();
    await drop();
  };
  return { database, ownerUrl, [Symbol.asyncDispose]: dispose };
}
