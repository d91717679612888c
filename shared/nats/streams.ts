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

// Streams and durable consumers are verified, and created or changed if NATS permits it. It permits
// that to `deno task provision`, and to services on a server without users, but not to services
// with the users of deploy/.

export interface WantedStream {
  name: string;
  subjects: [string, ...string[]];
  // Subjects that this user of the stream can do without: a stream of an earlier release, which lacks
  // them, is accepted if NATS does not permit to add them.
  newSubjects?: string[];
  duplicateWindowMs: number;
  replicas: number;
}

// A setting that is undefined must be unset.
type Changed = { [Key in keyof ConsumerConfig]?: ConsumerConfig[Key] | undefined };

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

// With other values of these settings somebody could make the stream drop or change events, or copy
// events in or out. The size (max_bytes) is up to the operator.
const requiredOfStreams: Partial<Record<keyof StreamConfig, unknown>> = {
  ...{ max_msgs: -1, max_msgs_per_subject: -1, max_msg_size: -1 },
  ...{ no_ack: false, sealed: false, allow_rollup_hdrs: false },
  ...{ mirror: undefined, sources: undefined, republish: undefined, subject_transform: undefined },
};

// Creates a missing stream, and changes one whose settings differ. Without mayMake it only
// verifies, because NATS has refused the rest before.
export async function ensureStream(
  manager: JetStreamManager,
  wanted: WantedStream,
  mayMake = true,
): Promise<StreamInfo> {
  const config = {
    ...requiredOfStreams,
    subjects: sorted([...wanted.subjects, ...(wanted.newSubjects ?? [])]),
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
  const earlier = { ...config, subjects: sorted(wanted.subjects) };
  const isEarlier = info && !differences(info.config, earlier);
  if (!mayMake && isEarlier) return info;
  if (!mayMake) throw new NotPermitted(problem);
  try {
    return info
      ? await manager.streams.update(wanted.name, { ...info.config, ...config })
      : await manager.streams.add({ name: wanted.name, ...config });
  } catch (error) {
    // Another replica may have created it a moment ago.
    if (!info && errorCode(error) === streamNameInUse) return ensureStream(manager, wanted);
    if (isEarlier && isNotPermitted(error)) return info;
    throw asRefusal(error, name, problem);
  }
}

// The same order for every service that wants them.
function sorted(subjects: string[]): string[] {
  return subjects.toSorted();
}

// With other values of these settings somebody could keep messages from a pull consumer, or change
// how they are delivered.
const requiredOfConsumers: Partial<ConsumerConfig> = {
  ...Object.fromEntries(
    ["filter_subject", "filter_subjects", "headers_only", "backoff", "inactive_threshold"]
      .concat("max_batch", "max_bytes", "max_expires", "deliver_subject", "deliver_group")
      .concat("mem_storage")
      .map((name) => [name, undefined]),
  ),
  replay_policy: ReplayPolicy.Instant,
};

// Does the same for a durable pull consumer of the stream. `earlier` are settings of an earlier
// release, which are accepted if NATS does not permit to change them.
export async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  wanted: WantedConsumer,
  mayMake = true,
  earlier: Changed = {},
): Promise<void> {
  const durable = wanted.durable_name;
  const name = `Consumer ${JSON.stringify(durable)}`;
  const info = await orNothing(manager.consumers.info(stream, durable), consumerNotFound);
  const config = { ...requiredOfConsumers, ...wanted };
  const differs = info && differences(info.config, config);
  if (info && !differs) return;
  const problem = differs ? `${name} differs from the settings: ${differs}` : `${name} is missing`;
  const isEarlier = info && !differences(info.config, { ...config, ...earlier });
  if (!mayMake && isEarlier) return;
  if (!mayMake) throw new NotPermitted(problem);
  try {
    if (info) await manager.consumers.update(stream, durable, { ...info.config, ...config });
    else await manager.consumers.add(stream, wanted); // adding the same consumer again is no error
  } catch (error) {
    if (isEarlier && isNotPermitted(error)) return;
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
function differences<Config extends object>(
  found: Config,
  wanted: { [Key in keyof Config]?: Config[Key] | undefined },
): string {
  return Object.entries(wanted)
    .map(([key, value]) => [key, shown(found[key as keyof Config]), shown(value)])
    .filter(([, is, want]) => is !== want)
    .map(([key, is, want]) => `${key} is ${is}, not ${want}`)
    .join(", ");
}

// The server leaves out settings without effect, or returns them as false or empty.
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
const noCluster = 10074; // several replicas were requested from a single server

function errorCode(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}

// An error that a retry would not fix stops the start.
function asRefusal(error: unknown, name: string, problem: string): unknown {
  if (isNotPermitted(error)) return new NotPermitted(problem);
  if (!isAboutSettings(error)) return error;
  return new StartRefused(`${name} can't get the wanted settings: ${reasonOf(error)}`);
}

function isNotPermitted(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.PermissionsViolation;
}

// The server reports wrong settings with code 400, but these errors with 500.
function isAboutSettings(error: unknown): boolean {
  if (!(error instanceof NatsError)) return false;
  const { code, err_code = 0 } = error.api_error ?? {};
  return code === 400 || [consumerNotChanged, streamNotChanged, noCluster].includes(err_code);
}

// Warns if this setup can lose acknowledged events.
export function warnOfLoss(info: StreamInfo, log: Log): void {
  if (info.config.num_replicas > 1) return;
  log.warn(
    "Stream {stream} has one replica: a lost disk, or a power failure unless nats-server runs " +
      "with sync_interval: always, loses acknowledged events, until their relay republishes those " +
      "that it keeps",
    { stream: info.config.name },
  );
}
