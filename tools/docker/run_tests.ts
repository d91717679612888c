// deno task test:docker: the tests that are about PostgreSQL, NATS and Redis, on servers in containers.
// Arguments go to `deno test` in place of those files.
//
// This folder has a lock of its own, because testcontainers brings a hundred and fifty packages
// that nobody else needs: in the common lock they would more than triple every first start.
import { NatsContainer, type StartedNatsContainer } from "@testcontainers/nats";
import { PostgreSqlContainer, type StartedPostgreSqlContainer } from "@testcontainers/postgresql";
import { GenericContainer, type StartedTestContainer, Wait } from "testcontainers";
import { inContainers } from "../server_tests.ts";

const images = {
  postgres: Deno.env.get("KENRI_TEST_POSTGRES_IMAGE") ?? "postgres:17.10",
  nats: Deno.env.get("KENRI_TEST_NATS_IMAGE") ?? "nats:2.10.29-alpine",
  redis: Deno.env.get("KENRI_TEST_REDIS_IMAGE") ?? "redis:8.0.2-alpine",
};

const redisPort = 6379;

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

/** As tools/servers/redis.ts configures it, but for the password. */
function startRedis(): Promise<StartedTestContainer> {
  return new GenericContainer(images.redis)
    .withCommand(["redis-server", "--databases", "4096", "--save", "", "--appendonly", "yes"])
    .withExposedPorts(redisPort)
    .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
    .start();
}

async function runTests(urls: Record<string, string>): Promise<number> {
  const tests = Deno.args.length > 0 ? Deno.args : ["--parallel", ...inContainers];
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "tools/run_tests.ts", ...tests],
    cwd: new URL("../..", import.meta.url),
    env: urls,
    stdin: "null",
  }).spawn().status;
  return code;
}

async function run(): Promise<number> {
  console.log(`Starting ${Object.values(images).join(", ")}`);
  await using containers = new AsyncDisposableStack();
  // They start one after the other, so that the first are stopped if a later one does not start.
  const postgres = containers.use(await startPostgres());
  const nats = containers.use(await startNats());
  const redis = containers.use(await startRedis());
  return await runTests({
    KENRI_TEST_POSTGRES_URL: postgres.getConnectionUri(),
    KENRI_TEST_NATS_URL: `nats://${nats.getConnectionOptions().servers}`,
    KENRI_TEST_REDIS_URL: `redis://${redis.getHost()}:${redis.getMappedPort(redisPort)}`,
  });
}

try {
  Deno.exit(await run());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  Deno.exit(1);
}
