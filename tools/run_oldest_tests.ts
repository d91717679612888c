// deno task test:oldest: the tests whose outcome depends on the servers, on the oldest ones that are
// supported. `deno task test` runs all on the newest. Arguments go to `deno test` in place of those files.
import { ofVersions } from "./server_tests.ts";
import { findOldestServers } from "./servers/find_oldest.ts";

const say = (line: string) => console.log(line);
const oldest = await findOldestServers(say).catch((error) => {
  say(`Skipped, because the oldest servers are not available here: ${error.message}`);
  Deno.exit(0);
});
const { code } = await new Deno.Command(Deno.execPath(), {
  args: [
    ...["run", "--allow-all", "tools/run_tests.ts"],
    ...(Deno.args.length > 0 ? Deno.args : ["--parallel", ...ofVersions]),
  ],
  cwd: new URL("../", import.meta.url),
  env: {
    KENRI_POSTGRES_BIN: oldest.postgresBin,
    KENRI_NATS_SERVER: oldest.natsServer,
    KENRI_REDIS_SERVER: oldest.redisServer,
  },
  stdin: "null",
}).spawn().status;
Deno.exit(code);
