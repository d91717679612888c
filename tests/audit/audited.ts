// An entitlement service whose audit can be verified, and ways to tamper with it.
import assert from "node:assert/strict";
import { auditHash } from "../../entitlement/audit/hash.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { grant, revoke } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import { startReplicas } from "../support/changes.ts";
import { freshDatabase, type TestDatabase } from "../support/databases.ts";
import { ops } from "../operators/ops.ts";
import { changeAsBefore } from "../database/release_before.ts";

export type Tampering = (user: string) => string;

export const ofUser = (user: string, version: number): string =>
  `where user_id = '${user}' and detail->>'version' = '${version}'`;
export const row = (version: number, set: string): Tampering => (user) =>
  `update entitlement_audit set ${set} ${ofUser(user, version)}`;
export const noRow = (version: number): Tampering => (user) =>
  `delete from entitlement_audit ${ofUser(user, version)}`;
export const entitlement = (set: string): Tampering => (user) =>
  `update entitlements set ${set} where user_id = '${user}'`;

interface Verified {
  code: number;
  before: string;
  entitlements: number;
  balances: number;
  rows: number;
  unhashed: number;
  erased: number;
  anchor: string;
  problems: { kind: string; user_id: string; version: number | null; audit_id: string | null }[];
}

export interface Place extends AsyncDisposable {
  url: string;
  ownerUrl: string;
  serviceUrl: string;
  verify(...options: string[]): Promise<Verified>;
  /** Grants and revokes a user's book in turns, this many times. */
  change(user: string, times: number, from?: number): Promise<void>;
  asBefore(user: string, version: number): Promise<void>;
}

export async function openPlace(): Promise<Place> {
  const database: TestDatabase = await freshDatabase("entitlement");
  const replicas = await startReplicas(1, database.serviceUrl, {
    ENTITLEMENT_DEBUG_ENABLED: "true",
  });
  const [url = ""] = replicas.urls;
  const pool = openDatabase(database.ownerUrl, "before");
  return {
    url,
    ownerUrl: database.ownerUrl,
    serviceUrl: database.serviceUrl,
    async verify(...options) {
      const nowhere = { url: "http://127.0.0.1:1" };
      const places = { entitlement: { url }, notification: nowhere };
      const { code, output, errors } = await ops(places, "audit", "verify", "--json", ...options);
      assert.equal(errors, "");
      return { code, ...JSON.parse(output) };
    },
    async change(user_id, times, from = 1) {
      for (let version = from; version < from + times; version++) {
        const { status, text } = await (version % 2 ? grant : revoke)(url, { user_id });
        assert.equal(status, 200, text);
      }
    },
    asBefore: (user, version) => changeAsBefore(pool, { user, version }),
    async [Symbol.asyncDispose]() {
      await pool.end();
      await replicas[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}

/** Makes the first change of a user so old, sealed as it would have been then. */
export async function age(ownerUrl: string, user: string, ago: string): Promise<void> {
  await ask(
    ownerUrl,
    `do $$
     declare
       month timestamp := date_trunc('month', now() at time zone 'UTC' - interval '${ago}');
       partition text := 'entitlement_audit_' || to_char(month, 'YYYY_MM');
     begin
       if to_regclass(partition) is null then
         execute format(
           'create table %I partition of entitlement_audit for values from (%L) to (%L)', partition,
           month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
       end if;
     end $$`,
  );
  const seal = (version: number, set: string) => ask(ownerUrl, row(version, set)(user));
  const rehash = (version: number) => seal(version, `hash = ${auditHash("entitlement_audit")}`);
  await seal(1, `occurred_at = now() - interval '${ago}'`);
  await rehash(1);
  await seal(
    2,
    `(previous_at, previous_hash) = (
       select first.occurred_at, first.hash from entitlement_audit first ${ofUser(user, 1)})`,
  );
  await rehash(2);
  await ask(ownerUrl, lastHashOf(user));
}

export const lastHashOf = (user: string): string =>
  `update entitlements set last_hash = (select hash from entitlement_audit ${ofUser(user, 2)})
   where user_id = '${user}'`;
