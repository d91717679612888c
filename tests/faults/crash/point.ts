// One row of the matrix: where a process dies, what it leaves behind, and what comes of it.
import type { ServiceProcess, Settings } from "../../../tools/servers/service_process.ts";
import type { FaultPoint } from "./fault_point.ts";
import type { Counts } from "./observer.ts";
import type { Stage } from "./stage.ts";

export interface CrashPoint {
  dies: string; // where, in words
  of: "entitlement" | "notification";
  at?: FaultPoint; // without one, `meanwhile` ends it
  settings?: Settings; // of all processes
  ownSettings?: Settings; // of the one that dies
  before?(stage: Stage): Promise<unknown>; // what has happened before it starts
  meanwhile?(stage: Stage, service: ServiceProcess): Promise<unknown>;
  leaves: Counts;
  unacknowledged?: number; // of the messages in the stream
  mend?(stage: Stage): Promise<unknown>; // what else changes before the next start
  next: string; // what the next start does, or another replica
  ends: Counts;
  sends: number;
  replays?: boolean; // whether the client that tries again is told what was stored
  seen: string; // by the client and by whom the channel sends to
}
