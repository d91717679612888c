// `deno task entitlement` and `notification` run one service in the foreground, with only the
// permissions that it needs.
import { keep } from "../../tools/servers/evidence.ts";
import assert from "node:assert/strict";
import { call, grant, list } from "../support/api.ts";
import { freshDatabase } from "../support/databases.ts";
import { settingsOf } from "../support/entitlement.ts";
import { eventOf } from "../support/events.ts";
import {
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  publishTo,
  settingsOf as notificationSettings,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import { type Settings, startService } from "../../tools/servers/service_process.ts";
import { freshStreamNames, natsUrl, readStream } from "../support/streams.ts";
import { inTime, until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";

const task = ["task", "entitlement"];

// The launcher as the task starts it, without the task around it.
async function launcher(): Promise<string[]> {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
  const { command = tasks.entitlement } = tasks.entitlement;
  const words = command.replace(/"\$\(.*\)"/, "DENO").split(" ").slice(1);
  return words.map((word: string) => word.replace("DENO", Deno.execPath()));
}

interface Launched extends AsyncDisposable {
  pid: number;
  output: { text: string };
  exited: Promise<number>;
  bothEnded(): Promise<void>;
  url(): Promise<string>;
}

function launch(args: string[], settings: Settings): Launched {
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: root,
    env: { ENTITLEMENT_HTTP_PORT: "0", ...settings, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const output = { text: "" };
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const bytes of stream) {
      const text = new TextDecoder().decode(bytes);
      output.text += text;
      keep("launcher", text);
    }
  };
  const exited = child.status.then(({ code }) => code);
  let closed = false; // both processes have closed their output
  void Promise.all([read(child.stdout), read(child.stderr)]).then(() => closed = true);
  return {
    pid: child.pid,
    output,
    exited,
    bothEnded: () => until("launcher and service have ended", () => closed),
    url: async () => {
      const listening = () => /Listening on (http:[^"]+)"/.exec(output.text)?.[1];
      await until("it listens", () => listening() !== undefined);
      return listening() ?? "";
    },
    [Symbol.asyncDispose]: async () => {
      try {
        child.kill("SIGKILL");
      } catch { /* It has ended already. */ }
      await exited;
    },
  };
}

Deno.test("the task starts a service that works, by address or by name", async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    await using database = await freshDatabase("entitlement");
    const { stream, subject } = freshStreamNames();
    const settings = settingsOf(database.serviceUrl, { stream, subject });
    const named = Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [name, value.replace("127.0.0.1", host)]),
    );
    await using launched = launch(task, { ...named, ENTITLEMENT_HTTP_HOST: host });
    const url = await launched.url();
    await until("it is ready", async () => (await call(`${url}/readyz`)).status === 200);
    assert.equal((await grant(url, { user_id: "bob" })).status, 200);
    assert.equal((await list(url, "bob")).json.entitlements.length, 1);
    await until(
      "it relays",
      async () => (await readStream(natsUrl, stream).catch(() => [])).length === 1,
    );
    assert.doesNotMatch(launched.output.text, /NotCapable|Requires/);
    Deno.kill(launched.pid, "SIGTERM");
    assert.equal(await inTime("it ends", launched.exited), 0);
    await launched.bothEnded();
    assert.match(launched.output.text, /"Stopped"/);
  }
});

Deno.test("the task passes on a stop signal and the exit code", async () => {
  await using database = await freshDatabase("entitlement");
  await using launched = launch(task, settingsOf(database.serviceUrl));
  const url = await launched.url();
  await using second = launch(task, {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_HTTP_PORT: new URL(url).port,
  });
  assert.equal(await inTime("it ends", second.exited), 1);
  assert.match(second.output.text, /Can't listen on 127\.0\.0\.1:\d+: .*in use/);
  Deno.kill(launched.pid, "SIGINT");
  assert.equal(await inTime("it ends", launched.exited), 0);
  await launched.bothEnded();
  assert.match(launched.output.text, /"Stopping because of SIGINT"[^]*"Stopped"/);
});

Deno.test("a service shuts down gracefully when its launcher is killed, or the task around it", async () => {
  await using database = await freshDatabase("entitlement");
  for (const args of [task, await launcher()]) {
    await using launched = launch(args, settingsOf(database.serviceUrl));
    await launched.url();
    Deno.kill(launched.pid, "SIGKILL");
    await launched.bothEnded();
    assert.match(launched.output.text, /"Stopping because of SIGTERM"[^]*"Stopped"/);
  }
});

Deno.test("with the permissions of its task the notification service receives, delivers, captures and cleans up", async () => {
  await using place = await freshPlace();
  await using service = await startService("notification", {
    ...notificationSettings(place),
    NOTIFICATION_DEBUG_ENABLED: "true",
  }, { arguments: () => ["task", "--quiet", "notification"], cwd: root });
  await until("it consumes", () => consumerInfo(place).then(() => true, () => false));
  await publishTo(place, [eventOf(), eventOf({ version: 2 }), eventOf({ eventId: "no UUID" })]);
  await untilSent(place, 2);
  await untilAllAcked(place);
  await until("it is captured", async () => (await countsOf(place)).notification_nats_dlq === 1);
  assert.deepEqual(await countsOf(place), { ...allSent(2), notification_nats_dlq: 1 });
  for (
    const path of [
      "livez",
      "readyz",
      "metrics",
      "openapi.json",
      "docs",
      "debug/notification/inbox/ann",
    ]
  ) {
    assert.equal((await call(`${service.url}/${path}`)).status, 200, path);
  }
  assert.equal(await service.stop(), 0);
});
