// One row of the matrix: where a process dies, what it leaves behind, and the result.
import type { ServiceProcess, Settings } from "../../../tools/servers/service_process.ts";
import type { FaultPoint } from "./fault_point.ts";
import type { Counts, Observer } from "./observer.ts";

export interface CrashPoint<Service extends string, On> {
  dies: string; // the point of the crash, in words
  of: Service;
  at?: FaultPoint; // absent: `meanwhile` ends the process
  settings?: Settings; // of all processes
  ownSettings?: Settings; // of the one that dies
  before?(on: On): Promise<unknown>; // runs before the process starts
  meanwhile?(on: On, service: ServiceProcess): Promise<unknown>;
  leaves: Counts;
  unacknowledged?: number; // of the messages in the stream
  afterwards?(on: On): Promise<unknown>; // runs after the crash and before the next start
  next: string; // what the next start or another replica does
  ends: Counts;
  sends?: number; // of notifications; absent only where none are sent
  replays?: boolean; // whether the repeated request gets the stored answer
  seen: string; // what the client and the user see
}

/** The services of a row, with databases and a stream of their own. */
export interface System<Service extends string> extends AsyncDisposable {
  settings: Settings; // of all processes
  shortLeases: Settings; // only of the one that dies: no other may lose a lease by being slow
  owners: Record<Service, string>;
  observer: Observer;
  start(service: Service, settings: Settings, change?: ChangeArguments): Promise<ServiceProcess>;
  /** Starts what goes on after the crash. */
  goOn(point: Ending<Service>, settings: Settings): Promise<Next>;
  /** What holds at the end besides the counts. */
  assertHolds(point: Ending<Service>, log: ServiceProcess["log"]): Promise<void>;
}

export type Ending<Service extends string> = Pick<
  CrashPoint<Service, unknown>,
  "of" | "replays" | "sends"
>;
export type Next = AsyncDisposable & Pick<ServiceProcess, "log">;

/** Of the arguments with which a process is run. */
export type ChangeArguments = (args: string[]) => string[];
