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
    property: "nobody comes back before the time that was asked for",
    replace: "return askedMs + grown * (0.5 + random);",
    by: "return Math.max(askedMs, grown) * (0.5 + random);",
    tests: unit,
  },
  {
    file: "client/attempts.ts",
    property: "a Retry-After that is over is no pause of its own",
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
    property: "a 429 is no answer but asks for patience",
    replace: "return status < 500 && status !== 429;",
    by: "return status < 500 || status === 429;",
    tests: system,
  },
  {
    file: "client/attempts.ts",
    property: "an attempt that the caller has ended is not tried again",
    replace: `  } catch (error) {
    signal?.throwIfAborted();
    return { error };`,
    by: `  } catch (error) {
    return { error };`,
    tests: attempts,
  },
  {
    file: "client/attempts.ts",
    property: "a caller that has had enough ends a pause at once",
    replace: '    signal?.addEventListener("abort", end);\n',
    by: "",
    tests: system,
  },
  {
    file: "client/client.ts",
    property: "what was refused as a conflict is thrown as one",
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
    property: "a key that would not arrive as it is never leaves",
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
    property: "a token from a function is asked for with each attempt",
    replace: 'typeof token === "string" ? token : await token(signal)',
    by: 'typeof token === "string" ? token : await (token = await token(signal))',
    tests: attempts,
  },
  {
    file: "client/client.ts",
    property: "the headers of a request go before those of the client",
    replace:
      "new Headers(options.headers);\n    for (const [name, value] of new Headers(request.headers))",
    by:
      "new Headers(request.headers);\n    for (const [name, value] of new Headers(options.headers))",
    tests: attempts,
  },
  {
    file: "client/client.ts",
    property: "a call's own patience goes before that of the client",
    replace: "call.deadlineMs ?? options.deadlineMs ?? 30_000",
    by: "options.deadlineMs ?? call.deadlineMs ?? 30_000",
    tests: attempts,
  },
];
