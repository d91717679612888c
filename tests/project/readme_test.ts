// The commands in README.md work as it says. The blocks are run unchanged, except for the ports.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { freePort } from "../../tools/servers/free_port.ts";
import { startServers } from "../../tools/servers/servers.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { type Answer, call, command, grant } from "../support/api.ts";
import { withClient } from "../support/databases.ts";
import { dataFolder, type Dev, startDev } from "./dev.ts";
import { until } from "../../tools/servers/wait.ts";
import { chromium, inTab, startBrowser } from "../support/browser.ts";
import { joined, ticket } from "../support/matchmaking.ts";
import { logInAs, untilSays } from "../support/people.ts";
import { startIssuer } from "../../tools/issuer/issuer.ts";
import { programs, serviceNames } from "../../tools/services.ts";
import { root } from "../../tools/root.ts";

const readme = await Deno.readTextFile(`${root}README.md`);
const blocks = [...readme.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = ""]) => block);
const blockWith = (text: string): string => {
  const found = blocks.filter((block) => block.includes(text));
  assert.equal(found.length, 1, `blocks with ${text}`);
  return found[0] ?? "";
};

// A shell splits the lines as it does for a reader. The test sends the requests itself, because not every
// machine has curl.
async function runCurls(block: string, replace: (text: string) => string): Promise<Answer[]> {
  const script = `curl() { printf '%s\\0' "$@"; printf '\\0'; }\n${replace(block)}`;
  const { success, stdout } = await new Deno.Command("sh", { args: ["-ec", script] }).output();
  assert.ok(success);
  const commands = new TextDecoder().decode(stdout).split("\0\0").slice(0, -1);
  const answers: Answer[] = [];
  for (const command of commands) answers.push(await curl(command.split("\0")));
  return answers;
}

function curl([url = "", ...options]: string[]): Promise<Answer> {
  const headers = new Headers();
  let body: string | undefined;
  for (let at = 0; at < options.length; at += 2) {
    const [name, value = ""] = options.slice(at);
    assert.ok(name === "-H" || name === "-d", `curl ${name}`);
    if (name === "-d") body = value;
    else headers.set(value.split(": ")[0] ?? "", value.split(": ")[1] ?? "");
  }
  return call(url, body === undefined ? { headers } : { method: "POST", headers, body });
}

Deno.test({
  name: "the commands of the README exist, and so do the files that documents lead to",
  fn: async () => {
    const { tasks } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
    const folders = ["", "docs/"];
    for (const folder of folders) {
      for await (const { name } of Deno.readDir(root + folder)) {
        if (!name.endsWith(".md")) continue;
        const text = await Deno.readTextFile(root + folder + name);
        for (const [, task = ""] of text.matchAll(/deno(?:@[\d.]+)? task ([\w:]+)/g)) {
          assert.ok(Object.hasOwn(tasks, task), `"deno task ${task}" in ${name}`);
        }
        for (const [, path = ""] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
          await Deno.stat(new URL(path, pathToFileURL(`${root}${folder}`))).catch(() => {
            assert.fail(`"${path}" in ${name} leads nowhere`);
          });
        }
      }
    }
    for (const [, version] of readme.matchAll(/deno@([\d.]+)/g)) {
      assert.equal(version, Deno.version.deno);
    }
  },
});

Deno.test({
  name:
    "the README's first steps: start it, grant a right, see it arrive, revoke it, reserve points, watch a shop",
  ignore: Deno.build.os !== "linux", // as in dev_test.ts
  fn: async () => {
    assert.match(blockWith("task dev"), /^npx -y deno@[\d.]+ task dev /m);
    await using folder = await dataFolder();
    await using dev = startDev(folder);
    await dev.ready();
    const here = (text: string) =>
      text.replaceAll("http://127.0.0.1:8080", dev.entitlement)
        .replaceAll("http://127.0.0.1:8081", dev.notification)
        .replaceAll("http://127.0.0.1:8085", dev.receiver);

    const [granted] = await runCurls(blockWith("/grants"), here);
    assert.deepEqual([granted?.status, granted?.json.status], [200, "ACTIVE"]);
    await until("the reader sees it", async () => {
      const [again, inbox] = await runCurls(blockWith("/grants"), here);
      assert.deepEqual(
        [again?.text, again?.headers.get("Idempotency-Replayed")],
        [granted?.text, "true"],
      );
      return inbox?.json.notifications[0]?.status === "SENT";
    });
    const [revoked, rights] = await runCurls(blockWith("/revokes"), here);
    assert.deepEqual([revoked?.json.status, revoked?.json.version], ["REVOKED", 2]);
    assert.equal(rights?.json.entitlements[0].stock_keeping_unit, "book");

    const [reserved] = await runCurls(blockWith("/reservations"), here);
    assert.deepEqual([reserved?.status, reserved?.json.status], [202, "PENDING"]);
    await until("the reserved points arrive", async () => {
      const [balances, inbox] = await runCurls(blockWith("/ann/points"), here);
      const [points] = balances?.json.balances ?? [];
      const [notification] = inbox?.json.notifications ?? [];
      const arrived = notification?.type === "PointsAdded" && notification.status === "SENT";
      return points?.balance === 100 && arrived;
    });

    await until("the order has succeeded", async () => {
      const [given, found] = await runCurls(blockWith("/v1/orders"), here);
      assert.equal(given?.status, 202);
      return found?.json.status === "SUCCEEDED" && found.json.ledger.http_status === 204;
    });

    const { success, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["task", "demo", "--changes", "20", "--rate", "40"],
      cwd: root,
      env: {
        ACCOUNT_HTTP_PORT: new URL(dev.account).port,
        ENTITLEMENT_HTTP_PORT: new URL(dev.entitlement).port,
        GATEWAY_HTTP_PORT: new URL(dev.gateway).port,
        KENRI_ISSUER_PORT: new URL(dev.issuer).port,
        NOTIFICATION_HTTP_PORT: new URL(dev.notification).port,
      },
      stdout: "piped",
    }).output();
    assert.ok(success);
    const said = new TextDecoder().decode(stdout);
    assert.match(said, /the same as webhooks +(\d+) +\1\n/);
    const [, customer = "", page] = /log in as "([\w-]+)" at (http:\S+)/.exec(said) ?? [];
    assert.equal(page, dev.gateway);
    if (chromium) await seePage(dev, customer);
    await dev.pressCtrlC();
    await dev.exited;
  },
});

const settingsOf = (ports: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(ports).map(([name, port]) => [`${name.toUpperCase()}_HTTP_PORT`, `${port}`]),
  );

/** As the one that the demo names, and as ann. */
async function seePage({ gateway, issuer }: Dev, customer: string): Promise<void> {
  await using browser = await startBrowser();
  for (const [name, greeting] of [[customer, customer], ["ann", "Ann Archer"]] as const) {
    await inTab(browser, async (tab) => {
      await logInAs(tab, { url: gateway }, name);
      await untilSays(tab, new RegExp(`^${greeting}$`, "m"));
      await untilSays(tab, /\nLive\n/);
      assert.deepEqual([...tab.origins].sort(), [gateway, issuer].sort());
    });
  }
}

Deno.test("the README's settings are enough to migrate and to run the services one by one", async () => {
  await using servers = await startServers();
  await withClient(servers.postgres.url, async (admin) => {
    await admin.query("create role owner superuser login password 'secret'");
  });
  const { postgres, nats, redis } = servers;
  await using issuer = await startIssuer({ clientId: "kenri", clientSecret: "secret" });
  const ports = Object.fromEntries(serviceNames.map((name) => [name, freePort()]));
  const here = (text: string) =>
    serviceNames.reduce(
      (text, name) => text.replaceAll(`:${programs[name].program.http?.port}`, `:${ports[name]}`),
      text.replaceAll("https://login.example.com", issuer.url)
        .replaceAll("127.0.0.1:5432", `127.0.0.1:${postgres.port}`)
        .replaceAll("nats://127.0.0.1:4222", nats.url)
        .replaceAll("redis://127.0.0.1:6379", redis.url),
    );
  const needed = ["NATS_URL", "SENDER_TOKEN", "GATEWAY_ISSUER", "REDIS_URL"];
  const lines = here(needed.map((name) => blockWith(`export ${name}`)).join("")).trim().split("\n");
  const commands = lines.filter((line) => line.startsWith("deno task"));
  const exports = lines.filter((line) => !commands.includes(line)).join("\n");
  const tasks = commands.map((line) => line.split(" ")[2]?.trim() ?? "");
  assert.deepEqual(tasks, [
    ...["migrate", "entitlement", "notification", "sender", "migrate", "account", "gateway"],
    "matchmaking",
  ]);
  const token = `export SENDER_TOKEN="$KENRI_TOKEN" NOTIFICATION_SENDER_TOKEN="$KENRI_TOKEN"`;
  const run = (task: string) =>
    new Deno.Command("sh", {
      args: ["-ec", `${exports}\n${token}\nexec "$DENO" task ${task}`],
      cwd: root,
      env: {
        ...settingsOf(ports),
        DENO: Deno.execPath(),
        NOTIFICATION_DEBUG_ENABLED: "true",
        KENRI_TOKEN: plantedPassword.repeat(4), // a shell of its own would choose another one
      },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
  assert.equal((await run("migrate").status).code, 0);
  const services = tasks.filter((task) => task !== "migrate").map(run);
  try {
    const url = (port: number | undefined) => `http://127.0.0.1:${port}`;
    for (const port of Object.values(ports)) {
      await until("it is ready", async () => {
        const answer = await call(`${url(port)}/readyz`).catch(() => undefined);
        return answer?.status === 200;
      });
    }
    assert.equal((await grant(url(ports["entitlement"]))).status, 200);
    await until("it arrives", async () => {
      const inbox = await call(`${url(ports["notification"])}/debug/notification/inbox/ann`);
      return inbox.json.notifications[0]?.status === "SENT";
    });
    const endpoints = `${url(ports["notification"])}/v1/endpoints`;
    const endpoint = { url: "https://example.com/hook" };
    const { status, text } = await command(endpoints, endpoint, undefined);
    assert.equal(status, 201, text.replaceAll(/whsec_[^"]*/g, ""));
    await match(url(ports["matchmaking"]), url(ports["notification"]));
    const login = await call(`${url(ports["gateway"])}/login`, { redirect: "manual" });
    assert.ok(login.headers.get("Location")?.startsWith(`${issuer.url}/auth?`));
  } finally {
    for (const service of services) service.kill("SIGTERM");
    const ended = await Promise.all(services.map((service) => service.status));
    assert.deepEqual(new Set(ended.map(({ code }) => code)), new Set([0]));
  }
});

async function match(matchmaking: string, notification: string): Promise<void> {
  const service = { url: matchmaking };
  const ann = await joined(service, "ann");
  await joined(service, "bob");
  assert.equal((await ticket(service, "ann", ann, "?wait=10s")).json.status, "MATCHED");
  await until("the match arrives", async () => {
    const inbox = await call(`${notification}/debug/notification/inbox/ann`);
    return inbox.json.notifications[0]?.type === "MatchFound";
  });
}
