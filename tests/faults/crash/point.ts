// One row of the matrix: where a process dies, what it leaves behind, and the result.
import type { ServiceProcess, Settings } from "../../../tools/servers/service_process.ts";
import type { FaultPoint } from "./fault_point.ts";
import type { Counts } from "./observer.ts";
import type { Stage } from "./stage.ts";

export interface CrashPoint {
  dies: string; // the point of the crash, in words
  of: "entitlement" | "notification";
  at?: FaultPoint; // absent: `meanwhile` ends the process
  settings?: Settings; // of all processes
  ownSettings?: Settings; // of the one that dies
  before?(stage: Stage): Promise<unknown>; // runs before the process starts
  meanwhile?(stage: Stage, service: ServiceProcess): Promise<unknown>;
  leaves: Counts;
  unacknowledged?: number; // of the messages in the stream
  afterwards?(stage: Stage): Promise<unknown>; // runs after the crash and before the next start
  next: string; // what the next start or another replica does
  ends: Counts;
  sends: number;
  replays?: boolean; // whether the repeated request gets the stored answer
  seen: string; // what the client and the user see
}
