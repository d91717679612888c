// The audit has a partition for each month, which is made ahead of time and dropped when it is old.
import assert from "node:assert/strict";
import pg from "pg";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase, withClient } from "../support/databases.ts";

Deno.test("this month and the next three have a partition from the start", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    assert.deepEqual(await monthsOf(service), [0, 1, 2, 3]);
  });
});

Deno.test("the service makes the missing partitions, and only those", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    assert.equal(await makePartitions(service, 5), 2);
    assert.equal(await makePartitions(service, 5), 0);
    assert.deepEqual(await monthsOf(service), [0, 1, 2, 3, 4, 5]);
  });
});

Deno.test("eight replicas that run at once make each partition once", async () => {
  await using database = await freshDatabase("entitlement");
  const made = await Promise.all(Array.from(
    { length: 8 },
    () => withClient(database.serviceUrl, (service) => makePartitions(service, 6)),
  ));
  assert.deepEqual(made.sort(), [0, 0, 0, 0, 0, 0, 0, 3]);
});

Deno.test("a row of the default partition moves to the partition of its month when that is made", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    const soon = await insertRow(database.ownerUrl, 4);
    const later = await insertRow(database.ownerUrl, 9);
    assert.deepEqual(await placeOf(service, soon), "entitlement_audit_default");

    await makePartitions(service, 5);
    assert.equal(await placeOf(service, soon), await partitionName(service, 4));
    assert.equal(await placeOf(service, later), "entitlement_audit_default");
  });
});

Deno.test("the first and the last moment of a month are in its partition", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query("set timezone = 'Pacific/Kiritimati'"); // months are still those of UTC
    await makePartitions(service, 6);
    const first = await insertRow(database.ownerUrl, 5);
    const last = await insertRow(database.ownerUrl, 6, "-1 microsecond");
    assert.equal(await placeOf(service, first), await partitionName(service, 5));
    assert.equal(await placeOf(service, last), await partitionName(service, 5));
  });
});

Deno.test("dropping old partitions keeps exactly the wanted months", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.ownerUrl, (owner) => makeOldPartitions(owner, 20));
  await withClient(database.serviceUrl, async (service) => {
    assert.equal(await dropPartitions(service, 13), 7);
    assert.equal(await dropPartitions(service, 13), 0);
    assert.deepEqual(await monthsOf(service), Array.from({ length: 17 }, (_, at) => at - 13));

    assert.equal(await dropPartitions(service, 1), 0, "the owner wants 13");
    await ask(database.ownerUrl, "update audit_retention set keep_months = 1");
    assert.equal(await dropPartitions(service, 1), 12);
    assert.deepEqual(await monthsOf(service), [-1, 0, 1, 2, 3]);
  });
});

Deno.test("the current month can't be dropped", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await assert.rejects(dropPartitions(service, 0), /keep_months must be at least 1, not 0/);
    assert.deepEqual(await monthsOf(service), [0, 1, 2, 3]);
  });
});

async function makePartitions(service: pg.Client, monthsAhead: number): Promise<number> {
  const { rows } = await service.query("select make_audit_partitions($1) as made", [monthsAhead]);
  return rows[0].made;
}

async function dropPartitions(service: pg.Client, keepMonths: number): Promise<number> {
  const { rows } = await service.query("select drop_audit_partitions($1) as dropped", [keepMonths]);
  return rows[0].dropped;
}

/** The months that have a partition, counted from this one. */
async function monthsOf(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query(`
    select
      (extract(year from month) - extract(year from now() at time zone 'UTC')) * 12
        + extract(month from month) - extract(month from now() at time zone 'UTC') as ahead
    from pg_inherits
    join pg_class on pg_class.oid = inhrelid,
    lateral to_date(substring(relname from '[0-9]{4}_[0-9]{2}$'), 'YYYY_MM') as month
    where inhparent = 'entitlement_audit'::regclass and relname <> 'entitlement_audit_default'
    order by month`);
  return rows.map(({ ahead }) => Number(ahead));
}

async function partitionName(client: pg.Client, monthsAhead: number): Promise<string> {
  const { rows } = await client.query(
    `select to_char(date_trunc('month', now() at time zone 'UTC') + make_interval(months => $1),
      '"entitlement_audit_"YYYY_MM') as name`,
    [monthsAhead],
  );
  return rows[0].name;
}

async function insertRow(ownerUrl: string, monthsAhead: number, and = "0"): Promise<string> {
  const auditId = crypto.randomUUID();
  await ask(
    ownerUrl,
    `insert into entitlement_audit
      (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
       detail)
    values
      ($1, (date_trunc('month', now() at time zone 'UTC') + make_interval(months => $2)
        + $3::interval) at time zone 'UTC',
       'ann', 'book', 'GRANT', 'purchase', '1', 'key', '{}')`,
    [auditId, monthsAhead, and],
  );
  return auditId;
}

async function placeOf(client: pg.Client, auditId: string): Promise<string> {
  const { rows } = await client.query(
    "select tableoid::regclass::text as place from entitlement_audit where audit_id = $1",
    [auditId],
  );
  return rows[0].place;
}

async function makeOldPartitions(owner: pg.Client, months: number): Promise<void> {
  for (let ago = 1; ago <= months; ago++) {
    const { rows: [{ lower, upper }] } = await owner.query(
      `select lower, lower + interval '1 month' as upper
      from (select date_trunc('month', now(), 'UTC') - make_interval(months => $1) as lower) as m`,
      [ago],
    );
    await owner.query(`
      create table ${await partitionName(owner, -ago)} partition of entitlement_audit
      for values from ('${lower.toISOString()}') to ('${upper.toISOString()}')`);
  }
}
