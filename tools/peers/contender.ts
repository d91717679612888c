// What the command and the processes of the libraries say to each other: lines of JSON.

export const names = [
  "graphile-worker",
  "pg-boss",
  "pg-transactional-outbox",
  "loop with js.publish",
  "loop with lean publisher",
] as const;
export type Name = typeof names[number];

/** Where a contender works, and how. */
export interface Task {
  name: Name;
  isOrdered: boolean;
  keys: number; // that the events share
  databaseUrl: string;
  natsUrl: string;
  subject: string;
}

/** Each is answered with a line when it is done. */
export type Command =
  | { do: "install"; task: Task } // the tables
  | { do: "fill"; task: Task; sourceUrl: string } // with the events of an outbox, in one transaction
  | { do: "start"; task: Task }
  | { do: "stop" };

export interface Answer {
  error?: string;
}
