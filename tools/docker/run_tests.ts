// deno task test:docker: the tests that are about PostgreSQL and NATS, on servers in containers.
// Arguments go to `deno test` in place of those files.
//
// This folder has a lock of its own, because testcontainers brings a hundred and fifty packages
// that nobody else needs: in the common lock they would more than triple every first start.
import { NatsContainer, type StartedNatsContainer } from "@testcontainers/nats";
import { PostgreSqlContainer, type StartedPostgreSqlContainer } from "@testcontainers/postgresql";
import { inContainers } from "../server_tests.ts";

const images = {
  postgres: Deno.env.get("KENRI_TEST_POSTGRES_IMAGE") ?? "postgres:17.10",
  nats: Deno.env.get("KENRI_TEST_NATS_IMAGE") ?? "nats:2.10.29-alpine",
};

// The module's own user and password are the same for everyone, so they keep nobody out.
class OpenNatsContainer extends NatsContainer {
  override withCommand(_command: string[]): this {
    return super.withCommand(["--jetstream", "--store_dir", "/tmp/jetstream"]);
  }
}

function startPostgres(): Promise<StartedPostgreSqlContainer> {
  return new PostgreSqlContainer(images.postgres)
    .withUsername("postgres")
    // Each test file holds a few pools at once.
    .withCommand(["postgres", "-c", "max_connections=200"])
    .withSharedMemorySize(256 * 1024 * 1024)
    .start();
}

function startNats(): Promise<StartedNatsContainer> {
  return new OpenNatsContainer(images.nats).start();
}

async function runTests(postgresUrl: string, natsUrl: string): Promise<number> {
  const tests = Deno.args.length > 0 ? Deno.args : ["--parallel", ...inContainers];
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "tools/run_tests.ts", ...tests],
    cwd: new URL("../..", import.meta.url),
    env: { KENRI_TEST_POSTGRES_URL: postgresUrl, KENRI_TEST_NATS_URL: natsUrl },
    stdin: "null",
  }).spawn().status;
  return code;
}

async function run(): Promise<number> {
  console.log(`Starting ${images.postgres} and ${images.nats}`);
  await using containers = new AsyncDisposableStack();
  // They start one after the other, so that the first is stopped if the second does not start.
  const postgres = containers.use(await startPostgres());
  const nats = containers.use(await startNats());
  return await runTests(
    postgres.getConnectionUri(),
    `nats://${nats.getConnectionOptions().servers}`,
  );
}

try {
  Deno.exit(await run());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  Deno.exit(1);
}
