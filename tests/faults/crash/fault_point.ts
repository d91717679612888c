// The point where a process dies. The test writes it, and die_at.ts reads it in the process.

export interface FaultPoint {
  when: "before" | "after";
  what:
    | "statement" // `part` is in its text; it is over with PostgreSQL's answer
    | "publish" // `part` ends its subject; it is over when the server has the message
    | "answer"; // to a message of the stream, and `part` begins it; over likewise
  part: string;
  nth?: number;
  withholds?: string; // statements that contain this are never sent, as if it died before them
}

export const variable = "KENRI_TEST_DIE_AT";

export function statement(when: FaultPoint["when"], part: string, nth = 1): FaultPoint {
  return { when, what: "statement", part, nth };
}
