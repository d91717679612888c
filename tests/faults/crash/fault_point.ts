// The point where a process dies. The test writes it, and die_at.ts reads it in the process.

export interface FaultPoint {
  when: "before" | "after";
  what:
    | "statement" // `part` is in its text; it is over with PostgreSQL's answer
    | "command" // of Redis, and `part` begins it; it is over with its answer
    | "publish" // `part` ends its subject; it is over when the server has the message
    | "answer"; // to a message of the stream, and `part` begins it; over likewise
  part: string;
  nth?: number;
  withholds?: string; // statements that contain this are never sent, as if it died before them
  since?: string; // commands count only after one that begins with this
  answered?: string; // a pattern; commands count only with such an answer, as JSON
}

export const variable = "KENRI_TEST_DIE_AT";

export function statement(when: FaultPoint["when"], part: string, nth = 1): FaultPoint {
  return { when, what: "statement", part, nth };
}

export function command(
  when: FaultPoint["when"],
  part: string,
  more: Pick<FaultPoint, "nth" | "since" | "answered"> = {},
): FaultPoint {
  return { when, what: "command", part, ...more };
}

/** The beginning of the command that runs a script. */
export const running = ({ sha }: { sha: string }): string => `EVALSHA ${sha}`;
