import type { Mutant } from "./mutant.ts";

const unit = ["client/attempts_test.ts"];
const attempts = ["tests/project/client_attempts_test.ts"];
const system = ["tests/project/client_test.ts"];

export const mutants: Mutant[] = [
  {
    file: "client/attempts.ts",
    property: "the pauses between attempts stop growing at five seconds",
    replace: "Math.min(longestPauseMs, firstPauseMs * 2 ** (nextAttempt - 1))",
    by: "Math.max(longestPauseMs, firstPauseMs * 2 ** (nextAttempt - 1))",
    tests: unit,
  },
  {
    file: "client/attempts.ts",
    property: "no attempt starts before the time that was asked for",
    replace: "return askedMs + grown * (0.5 + random);",
    by: "return Math.max(askedMs, grown) * (0.5 + random);",
    tests: unit,
  },
  {
    file: "client/attempts.ts",
    property: "a Retry-After in the past adds no pause",
    replace: "Number.isFinite(ms) ? Math.max(0, ms) : 0",
    by: "Number.isFinite(ms) ? ms : 0",
    tests: unit,
  },
  {
    file: "client/attempts.ts",
    property: "the time limit of an attempt lasts until the last byte of the answer",
    replace: `    const response = await fetch(url, { ...init, signal: either });
`,
    by: `    const response = await fetch(url, { ...init, signal: either });
    clearTimeout(timer);
`,
    tests: attempts,
  },
  {
    file: "client/attempts.ts",
    property: "the last attempt ends at the deadline of the call",
    replace: "Math.min(attemptTimeoutMs, leftMs)",
    by: "Math.max(attemptTimeoutMs, leftMs && 1)",
    tests: attempts,
  },
  {
    file: "client/attempts.ts",
    property: "no pause goes beyond the deadline of the call",
    replace: "if (performance.now() + pauseMs >= deadline)",
    by: "if (performance.now() >= deadline)",
    tests: attempts,
  },
  {
    file: "client/attempts.ts",
    property: "a 429 is not an answer but asks the client to wait",
    replace: "return status < 500 && status !== 429;",
    by: "return status < 500 || status === 429;",
    tests: system,
  },
  {
    file: "client/attempts.ts",
    property: "an attempt that the caller aborts is not repeated",
    replace: `  } catch (error) {
    signal?.throwIfAborted();
    return { error };`,
    by: `  } catch (error) {
    return { error };`,
    tests: attempts,
  },
  {
    file: "client/attempts.ts",
    property: "an abort ends a pause at once",
    replace: '    signal?.addEventListener("abort", end);\n',
    by: "",
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "a conflict is thrown as Conflict",
    replace: "if (answer.status === 409)",
    by: "if (answer.status === 408)",
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "a redirection is not followed",
    replace: 'redirect: "manual"',
    by: 'redirect: "follow"',
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "a key that could not be transmitted unchanged is refused before it is sent",
    replace: "if (/^[\\x21-\\x7e]{1,255}$/.test(key)) return key;",
    by: "if (/^[\\x20-\\x7e]{1,255}$/.test(key)) return key;",
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "a user's name in the path is escaped",
    replace: "${encodeURIComponent(userId)}",
    by: "${encodeURI(userId)}",
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "a token function is called again for each attempt",
    replace: 'typeof token === "string" ? token : await token(signal)',
    by: 'typeof token === "string" ? token : await (token = await token(signal))',
    tests: attempts,
  },
  {
    file: "client/client.ts",
    property: "the headers of a request replace those of the options",
    replace:
      "new Headers(options.headers);\n    for (const [name, value] of new Headers(request.headers))",
    by:
      "new Headers(request.headers);\n    for (const [name, value] of new Headers(options.headers))",
    tests: attempts,
  },
  {
    file: "client/client.ts",
    property: "the time limits of a call replace those of the client",
    replace: "call.deadlineMs ?? options.deadlineMs ?? 30_000",
    by: "options.deadlineMs ?? call.deadlineMs ?? 30_000",
    tests: attempts,
  },
];
