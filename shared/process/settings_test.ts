import assert from "node:assert/strict";
import { z } from "zod";
import { environmentName } from "./program.ts";
import { notAbove, notSame, parseSettings, prefixed, SettingsError } from "./settings.ts";
import {
  duration,
  flag,
  host,
  natsName,
  natsSubject,
  number,
  port,
  serverUrl,
  text,
} from "./setting_kinds.ts";

function parsed(schema: z.ZodType, value?: string): unknown {
  const read = (name: string) => name === "A_SETTING" ? value : undefined;
  return parseSettings(z.object({ "a.setting": schema }), read)["a.setting"];
}

function problemOf(schema: z.ZodType, value?: string): string {
  try {
    parsed(schema, value);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems.join("; ");
    throw error;
  }
  return "";
}

Deno.test("a setting's environment name is its key in capitals, dots and dashes as underscores", () => {
  assert.equal(
    environmentName("entitlement.outbox.poll-interval"),
    "ENTITLEMENT_OUTBOX_POLL_INTERVAL",
  );
});

Deno.test("durations are read in their unit", () => {
  const written = { "200ms": 200, "1s": 1e3, "2m": 12e4, "24h": 864e5, "30d": 2592e6, "007s": 7e3 };
  for (const [duration_, ms] of Object.entries(written)) {
    assert.equal(parsed(duration(), duration_), ms);
  }
});

Deno.test("a value that is not a duration above zero is refused and quoted", () => {
  for (
    const bad of ["0s", "0ms", "-1s", "1", "s", "1 s", "1.5s", "1S", "1w", "1s1s", "1e3s", "٣s"]
  ) {
    assert.equal(
      problemOf(duration(), bad),
      `A_SETTING must be a duration above zero such as 200ms, 1s, 2m, 24h or 30d, not "${bad}"`,
    );
  }
});

Deno.test("a duration that is too long for a timer is refused, not shortened", () => {
  assert.match(problemOf(duration(), "3651d"), /is too long/);
  assert.match(problemOf(duration(1_000), "1001ms"), /is too long/);
  assert.match(problemOf(duration(), "9999999999d"), /^A_SETTING /);
});

Deno.test("numbers are whole and within their bounds", () => {
  const schema = number({ min: 1, max: 10 });
  assert.equal(parsed(schema, "10"), 10);
  for (const bad of ["0", "11", "-1", "1.5", "1e1", "0x5", "ten", "Infinity", "NaN", " 1"]) {
    assert.match(problemOf(schema, bad), /^A_SETTING must be a whole number from 1 to 10, not "/);
  }
  assert.equal(parsed(number({ min: 0, max: 1, whole: false }), "0.5"), 0.5);
  assert.equal(parsed(port(), "0"), 0);
  assert.match(problemOf(port(), "65536"), /from 0 to 65535/);
});

Deno.test("a flag is the word true or the word false", () => {
  assert.deepEqual([parsed(flag(), "true"), parsed(flag(), "false")], [true, false]);
  for (const bad of ["True", "yes", "1", "on"]) {
    assert.equal(problemOf(flag(), bad), `A_SETTING must be true or false, not "${bad}"`);
  }
});

Deno.test("a name for NATS has no separator and no wildcard, a subject no wildcard", () => {
  for (const bad of ["a.b", "a b", "a*", "a/b"]) {
    assert.match(problemOf(natsName(), bad), /^A_SETTING must not contain white space or any of/);
  }
  for (const bad of ["a.>", "a..b"]) {
    assert.match(problemOf(natsSubject(), bad), /^A_SETTING must be names joined by dots/);
  }
  assert.deepEqual([parsed(natsName(), "a-b"), parsed(natsSubject(), "a.b")], ["a-b", "a.b"]);
});

Deno.test("a blank setting is refused, even if it has a default", () => {
  for (
    const schema of [text(), duration().prefault("1s"), port().prefault("1"), text().optional()]
  ) {
    for (const blank of ["", " ", "\t\n"]) {
      assert.match(problemOf(schema, blank), /^A_SETTING must not be blank/);
    }
  }
});

Deno.test("only the first problem of a setting is named", () => {
  assert.equal(problemOf(serverUrl("nats:"), " "), "A_SETTING must not be blank");
});

Deno.test("two settings with a bound between them may be the same", () => {
  const schema = z.object({ low: number({ min: 0, max: 9 }), high: number({ min: 0, max: 9 }) })
    .check(notAbove("low", "high"));
  const given: Record<string, string> = { LOW: "3", HIGH: "3" };
  assert.deepEqual(parseSettings(schema, (name) => given[name]), { low: 3, high: 3 });
});

Deno.test("two settings that must differ are compared, unless one of them is missing", () => {
  const schema = z.object({ one: text().optional(), other: text().optional() })
    .check(notSame("one", "other"));
  const problems = (given: Record<string, string>) => {
    try {
      return parseSettings(schema, (name) => given[name]) && [];
    } catch (error) {
      return (error as SettingsError).problems;
    }
  };
  assert.deepEqual(problems({ ONE: "a", OTHER: "b" }), []);
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ ONE: "a", OTHER: "a" }), ["ONE must not be the same as OTHER"]);
});

Deno.test("a missing required setting is named", () => {
  assert.equal(problemOf(text()), "A_SETTING is required");
  assert.equal(problemOf(serverUrl("nats:")), "A_SETTING is required");
});

Deno.test("a bad url is refused without being repeated, because it may hold a password", () => {
  const schema = serverUrl("postgres:", "postgresql:");
  assert.equal(parsed(schema, "postgresql://u:p@[::1]:1/d"), "postgresql://u:p@[::1]:1/d");
  for (
    const bad of [
      "mysql://u:secret@h/d",
      "secret",
      "postgres://",
      "postgres:///secret",
      "postgres://secret,h/d",
      "postgres://%2Fsecret/d",
      "postgres://u:secret%@h/d",
      "postgres://%ff:secret@h/d",
      "postgres://u secret@[::1]/d",
      "//secret",
    ]
  ) {
    assert.equal(
      problemOf(schema, bad),
      "A_SETTING must be a url, percent-encoded, that begins with postgres:// or postgresql://",
    );
  }
});

Deno.test("all wrong settings are reported at once", () => {
  const schema = z.object({
    ...prefixed("a", { "url": serverUrl("nats:"), "wait": duration(), "name": text() }),
    ...prefixed("a.jitter", { min: number({ min: 0, max: 9 }), max: number({ min: 0, max: 9 }) }),
  }).check(notAbove("a.jitter.min", "a.jitter.max"));
  const given: Record<string, string> = { A_WAIT: "0s", A_JITTER_MIN: "3", A_JITTER_MAX: "2" };
  assert.throws(() => parseSettings(schema, (name) => given[name]), (error) => {
    assert.ok(error instanceof SettingsError);
    const names = error.problems.map((problem) => problem.split(" ")[0]);
    assert.deepEqual(names, ["A_URL", "A_WAIT", "A_NAME", "A_JITTER_MIN"]);
    assert.equal(error.problems[3], "A_JITTER_MIN must not be above A_JITTER_MAX");
    return true;
  });
});

Deno.test("nothing but the settings of the schema is read", () => {
  const read: string[] = [];
  parseSettings(z.object({ "a.b-c": text().optional() }), (name) => void read.push(name));
  assert.deepEqual(read, ["A_B_C"]);
});

Deno.test("a host is a name or an address, of which exactly one permission can be made", () => {
  for (const good of ["127.0.0.1", "localhost", "db-1.example.org", "::1", "::", "fe80::1"]) {
    assert.equal(parsed(host(), good), good);
  }
  for (const bad of ["a,b", "a:1", "[::1]", "a b", "a/b", "*", "a@b", "http://a"]) {
    assert.match(problemOf(host(), bad), /^A_SETTING must be a host's name or address/);
  }
});
