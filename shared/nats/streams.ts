import {
  type ConsumerConfig,
  DiscardPolicy,
  ErrorCode,
  type JetStreamManager,
  NatsError,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "nats";
import { reasonOf } from "../process/reason.ts";
import { StartRefused } from "../process/start_refused.ts";
import type { Log } from "../process/log.ts";

// Streams and durable consumers are verified, and made or changed where NATS permits it: for services
// on an open server, and for `deno task provision`, but not for services with the users of deploy/.

export interface WantedStream {
  name: string;
  subject: string;
  duplicateWindowMs: number;
  replicas: number;
}

export type WantedConsumer = Partial<ConsumerConfig> & { durable_name: string };

// NATS does not permit this process to make or change what it needs.
export class NotPermitted extends StartRefused {
  readonly problem: string;

  constructor(problem: string) {
    super(
      `${problem}, and NATS does not permit this service to change that: run \`deno task provision\``,
    );
    this.problem = problem;
  }
}

const nanosecondsPerMs = 1_000_000;
const maxAgeMs = 7 * 24 * 3_600_000;

// With these settings somebody could make the stream drop or change events, or copy events in or out.
// The operator decides about its size (max_bytes).
const foreignToStreams: Partial<Record<keyof StreamConfig, unknown>> = {
  ...{ max_msgs: -1, max_msgs_per_subject: -1, max_msg_size: -1 },
  ...{ no_ack: false, sealed: false, allow_rollup_hdrs: false },
  ...{ mirror: undefined, sources: undefined, republish: undefined, subject_transform: undefined },
};

// Makes the stream if it is missing and brings it to the wanted settings if it differs. Without mayMake
// it does not try again what NATS has refused.
export async function ensureStream(
  manager: JetStreamManager,
  wanted: WantedStream,
  mayMake = true,
): Promise<StreamInfo> {
  const config = {
    ...foreignToStreams,
    subjects: [wanted.subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    duplicate_window: wanted.duplicateWindowMs * nanosecondsPerMs,
    max_age: maxAgeMs * nanosecondsPerMs,
    num_replicas: wanted.replicas,
  } as Partial<StreamConfig>;
  const name = `Stream ${JSON.stringify(wanted.name)}`;
  const info = await orNothing(manager.streams.info(wanted.name), streamNotFound);
  const differs = info && differences(info.config, config);
  if (info && !differs) return info;
  const problem = differs ? `${name} differs from the settings: ${differs}` : `${name} is missing`;
  if (!mayMake) throw new NotPermitted(problem);
  try {
    return info
      ? await manager.streams.update(wanted.name, { ...info.config, ...config })
      : await manager.streams.add({ name: wanted.name, ...config });
  } catch (error) {
    // Another replica may have made it a moment ago.
    if (!info && errorCode(error) === streamNameInUse) return ensureStream(manager, wanted);
    throw asRefusal(error, name, problem);
  }
}

// Settings with which somebody could keep messages from a pull consumer, or change how they are
// delivered.
const foreignToConsumers: Partial<ConsumerConfig> = {
  ...Object.fromEntries(
    ["filter_subject", "filter_subjects", "headers_only", "backoff", "inactive_threshold"]
      .concat("max_batch", "max_bytes", "max_expires", "deliver_subject", "deliver_group")
      .concat("mem_storage")
      .map((name) => [name, undefined]),
  ),
  replay_policy: ReplayPolicy.Instant,
};

// Likewise for a durable pull consumer of the stream.
export async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  wanted: WantedConsumer,
  mayMake = true,
): Promise<void> {
  const durable = wanted.durable_name;
  const name = `Consumer ${JSON.stringify(durable)}`;
  const info = await orNothing(manager.consumers.info(stream, durable), consumerNotFound);
  const config = { ...foreignToConsumers, ...wanted };
  const differs = info && differences(info.config, config);
  if (info && !differs) return;
  const problem = differs ? `${name} differs from the settings: ${differs}` : `${name} is missing`;
  if (!mayMake) throw new NotPermitted(problem);
  try {
    if (info) await manager.consumers.update(stream, durable, { ...info.config, ...config });
    else await manager.consumers.add(stream, wanted); // the same again is no error
  } catch (error) {
    throw asRefusal(error, name, problem);
  }
}

async function orNothing<Info>(asked: Promise<Info>, notFound: number): Promise<Info | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (errorCode(error) === notFound) return undefined;
    throw error;
  }
}

// Each setting that differs, as "max_msgs is 1, not -1"; empty when none does.
function differences<Config extends object>(found: Config, wanted: Partial<Config>): string {
  return Object.entries(wanted)
    .map(([key, value]) => [key, shown(found[key as keyof Config]), shown(value)])
    .filter(([, is, want]) => is !== want)
    .map(([key, is, want]) => `${key} is ${is}, not ${want}`)
    .join(", ");
}

// The server leaves out what has no effect, or writes it as false or empty.
function shown(value: unknown): string {
  const isEmpty = value === undefined || value === null || value === false ||
    Array.isArray(value) && value.length === 0;
  return isEmpty ? "unset" : JSON.stringify(value);
}

const consumerNotFound = 10014;
const streamNotFound = 10059;
const streamNameInUse = 10058;
const consumerNotChanged = 10012;
const streamNotChanged = 10052;
const noCluster = 10074; // several replicas are wanted of a server that is alone

function errorCode(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}

// An error that trying again would not help becomes a reason not to start.
function asRefusal(error: unknown, name: string, problem: string): unknown {
  if (isNotPermitted(error)) return new NotPermitted(problem);
  if (!isAboutSettings(error)) return error;
  return new StartRefused(`${name} can't get the wanted settings: ${reasonOf(error)}`);
}

function isNotPermitted(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.PermissionsViolation;
}

// 400 is the server's word that the settings are at fault; these errors say so too, but come with 500.
function isAboutSettings(error: unknown): boolean {
  if (!(error instanceof NatsError)) return false;
  const { code, err_code = 0 } = error.api_error ?? {};
  return code === 400 || [consumerNotChanged, streamNotChanged, noCluster].includes(err_code);
}

// Says once, in one line, how this setup can lose what it acknowledged.
export function warnOfLoss(info: StreamInfo, log: Log): void {
  if (info.config.num_replicas > 1) return;
  log.warn(
    "Stream {stream} has one replica: a lost disk, or a power failure unless nats-server runs " +
      "with sync_interval: always, loses acknowledged events until the relay publishes them again",
    { stream: info.config.name },
  );
}
