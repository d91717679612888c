// An account service and replicas of the gateway, with people who have sessions.
import { gatewaySettings, provider, type ResolvedUser, sessionCookie } from "../load/sessions.ts";
import { makeDatabase } from "../servers/databases.ts";
import type { Servers } from "../servers/servers.ts";
import { type ServiceProcess, type Settings, startService } from "../servers/service_process.ts";
import { until } from "../servers/wait.ts";

export interface Person {
  userId: string;
  cookie: string; // the header Cookie
}

export interface GatewayStage extends AsyncDisposable {
  account: ServiceProcess;
  ownerUrl: string; // of the account service's database
  gateways: ServiceProcess[];
  people: Person[];
}

interface Options {
  people: number;
  replicas?: number;
  /** Further settings, with the address of the account service. */
  behind?: (accountUrl: string) => Settings;
}

export async function startGatewayStage(
  servers: Servers,
  name: string,
  { people, replicas = 1, behind = () => ({}) }: Options,
): Promise<GatewayStage> {
  await using started = new AsyncDisposableStack();
  const database = await makeDatabase(servers.postgres, "account", `bench_${name}`);
  const [stream, subject] = [`bench-${name}`, `bench.${name}`];
  const broker = { NATS_URL: servers.nats.url };
  const account = await startService("account", {
    ...broker,
    ACCOUNT_DATABASE_URL: database.serviceUrl,
    ACCOUNT_NATS_STREAM: stream,
    ACCOUNT_NATS_SUBJECT: subject,
  });
  started.defer(() => account.kill().then(() => {}));
  const settings = {
    ...broker,
    ...gatewaySettings,
    GATEWAY_ACCOUNT_URL: account.url,
    GATEWAY_NATS_STREAM: stream,
    GATEWAY_NATS_SUBJECT: subject,
    // Few people make all requests here.
    GATEWAY_RATE_USER: "1000000",
    GATEWAY_RATE_USER_BURST: "1000000",
    ...behind(account.url),
  };
  const gateways: ServiceProcess[] = [];
  for (let i = 0; i < replicas; i++) {
    const gateway = await startService("gateway", settings);
    started.defer(() => gateway.kill().then(() => {}));
    gateways.push(gateway);
  }
  const all = await Promise.all(Array.from({ length: people }, (_, i) => enter(account.url, i)));
  for (const gateway of gateways) await untilNobodyIsAsked(gateway, all);
  const stack = started.move();
  return {
    account,
    ownerUrl: database.ownerUrl,
    gateways,
    people: all,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function enter(accountUrl: string, number: number): Promise<Person> {
  const answer = await fetch(`${accountUrl}/v1/identities:resolve`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ provider, subject: `person-${number}`, name: `Person ${number}` }),
  });
  const user: ResolvedUser = await answer.json();
  return { userId: user.user_id, cookie: await sessionCookie(user) };
}

/** The gateway knows everybody, and its feed is current, so that it decides by what it knows. */
async function untilNobodyIsAsked({ url }: ServiceProcess, people: Person[]): Promise<void> {
  const asked = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^gateway_session_checks_total\{by="asked"\} (\d+)$/m.exec(text)?.[1]);
  };
  await until("the gateway asks for nobody", async () => {
    const before = await asked();
    for (const person of people) await getMe(url, person);
    return await asked() === before;
  });
}

/** The status of /v1/me. */
export async function getMe(url: string, { cookie }: Person): Promise<number> {
  const answer = await fetch(`${url}/v1/me`, { headers: { Cookie: cookie } });
  await answer.body?.cancel();
  return answer.status;
}
