// Both services at work on one stream, each on a database of its own: as many replicas as are wanted,
// which can be stopped and started again one by one.
import { type ServiceProcess, type Settings, startService } from "../servers/service_process.ts";
import { until } from "../servers/wait.ts";

/** The services between a change and its notification. */
export type FlowService = "entitlement" | "notification";

export interface DatabaseUrls {
  ownerUrl: string;
  serviceUrl: string;
}

/** Where replicas of one service work together. */
export interface Place extends DatabaseUrls {
  natsUrl: string;
  stream: string;
  subject: string;
}

export const durable = "notifications";
export const pointsDurable = `${durable}-points`;

/** The subject of the events of points, which differs for each stream because a subject is in one stream only. */
export function pointsSubjectOf({ stream }: Pick<Place, "stream">): string {
  return `${stream}.points`;
}

/** What a service can't start without, and a subject of its own for the events of points. */
export function requiredSettings(
  service: FlowService,
  { serviceUrl, natsUrl, stream, subject }: Omit<Place, "ownerUrl">,
): Settings {
  const points = service === "notification" ? "NOTIFICATION_NATS" : "ENTITLEMENT";
  const prefix = service.toUpperCase();
  return {
    [`${prefix}_DATABASE_URL`]: serviceUrl,
    [`${prefix}_NATS_STREAM`]: stream,
    [`${prefix}_NATS_SUBJECT`]: subject,
    [`${points}_POINTS_SUBJECT`]: pointsSubjectOf({ stream }),
    ...(service === "notification" ? { NOTIFICATION_NATS_DURABLE: durable } : {}),
    NATS_URL: natsUrl,
  };
}

/** Where both services work together. */
export interface BothPlaces {
  natsUrl: string;
  stream: string;
  subject: string;
  entitlement: DatabaseUrls;
  notification: DatabaseUrls;
  owners: Record<FlowService, string>;
  settings: Settings; // of both services
}

export function bothPlaces(
  parts: Omit<BothPlaces, "owners" | "settings">,
  more: Settings = {},
): BothPlaces {
  const { entitlement, notification, ...broker } = parts;
  return {
    ...parts,
    owners: { entitlement: entitlement.ownerUrl, notification: notification.ownerUrl },
    settings: {
      ...requiredSettings("entitlement", { ...broker, serviceUrl: entitlement.serviceUrl }),
      ...requiredSettings("notification", { ...broker, serviceUrl: notification.serviceUrl }),
      ...more,
    },
  };
}

export interface Stage extends BothPlaces, AsyncDisposable {
  replicas: Record<FlowService, ServiceProcess[]>;
  everStarted: Record<FlowService, ServiceProcess[]>;
  /** The first replica. */
  one(service: FlowService): ServiceProcess;
  start(service: FlowService): Promise<void>;
  /** Fails if a replica does not end by itself, with exit code 0. */
  stop(service?: FlowService): Promise<void>;
  /** One after the other, each ready before the next is stopped. */
  restart(service: FlowService): Promise<void>;
}

export async function startStage(places: BothPlaces, count = 1): Promise<Stage> {
  const replicas: Stage["replicas"] = { entitlement: [], notification: [] };
  const everStarted: Stage["everStarted"] = { entitlement: [], notification: [] };
  const ports: Record<FlowService, string[]> = { entitlement: [], notification: [] };

  async function startOne(service: FlowService, number: number): Promise<void> {
    const process = await startService(service, {
      ...places.settings,
      [`${service.toUpperCase()}_HTTP_PORT`]: ports[service][number] ?? "0",
      HOSTNAME: `${service}-${number}`,
    });
    ports[service][number] = new URL(process.url).port;
    replicas[service][number] = process;
    everStarted[service].push(process);
  }

  async function start(service: FlowService): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, number) => startOne(service, number)));
  }

  async function stop(service?: FlowService): Promise<void> {
    const all = service ? replicas[service] : [...replicas.entitlement, ...replicas.notification];
    await Promise.all(all.map(stopOne));
  }

  async function restart(service: FlowService): Promise<void> {
    for (const [number, process] of replicas[service].entries()) {
      await stopOne(process);
      await startOne(service, number);
      await untilReady(replicas[service][number] as ServiceProcess);
    }
  }

  await Promise.all([start("entitlement"), start("notification")]);
  return {
    ...places,
    replicas,
    everStarted,
    one: (service) => replicas[service][0] as ServiceProcess,
    start,
    stop,
    restart,
    async [Symbol.asyncDispose]() {
      const all = [...everStarted.entitlement, ...everStarted.notification];
      await Promise.all(all.map((process) => process.kill()));
    },
  };
}

async function stopOne(process: ServiceProcess): Promise<void> {
  const code = await process.stop();
  if (code !== 0) throw new Error(`The replica at ${process.url} ended with ${code}, not 0`);
}

export function untilReady({ url }: ServiceProcess): Promise<void> {
  return until("it is ready", async () => {
    const answer = await fetch(`${url}/readyz`);
    await answer.body?.cancel();
    return answer.status === 200;
  });
}

export function urlsOf(processes: ServiceProcess[]): string[] {
  return processes.map(({ url }) => url);
}
