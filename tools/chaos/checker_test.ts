// The checker finds nothing in sound evidence, and notices each change that makes it unsound.
import assert from "node:assert/strict";
import { plantedKey, plantedPassword } from "../planted.ts";
import { check } from "./checker.ts";
import { type Harm, testHarms } from "./harms.ts";
import { first, soundEvidence } from "./sound_evidence.ts";

Deno.test("sound evidence breaks no invariant", () => {
  const invariants = check(soundEvidence());
  assert.deepEqual(invariants.filter(({ violations }) => violations > 0), []);
  assert.deepEqual(
    invariants.filter(({ checked }) => checked === 0),
    [],
    "each checks something",
  );
});

Deno.test("a stall of the sender, or of the run itself, explains a repeated send", () => {
  const stall = { from: 1_012, until: 1_015 };
  const [ofSender, ofRun] = [soundEvidence(), soundEvidence()];
  ofSender.log.stalls = [{ ...stall, pid: 1 }];
  ofRun.stalls = [stall];
  for (const evidence of [ofSender, ofRun]) {
    evidence.injected = [];
    assert.deepEqual(check(evidence).filter(({ violations }) => violations > 0), []);
  }
});

const harms: Harm[] = [
  [
    "an acknowledged change is lost",
    /^1\. An acknowledged change/,
    ({ tables }) => {
      tables.events = tables.events.filter(({ version }) => version < 3);
      tables.audit = tables.audit.filter(({ version }) => version < 3);
    },
  ],
  ["an outbox row is missing", /exactly one outbox row/, ({ tables }) => tables.events.shift()],
  [
    "an outbox row is doubled",
    /exactly one outbox row/,
    ({ tables }) => tables.events.push({ ...first(tables.events), event_id: "other" }),
  ],
  ["an audit row is missing", /one audit row/, ({ tables }) => tables.audit.shift()],
  [
    "a version is left out",
    /^1\. The versions/,
    ({ tables }) => tables.audit.forEach((row) => row.version > 2 && row.version++),
  ],
  [
    "a later change got a lower version",
    /higher version/,
    ({ requests }) => {
      const [one, two] = [first(requests), first(requests.slice(1))];
      [one.sentAt, two.sentAt] = [two.sentAt, one.sentAt];
      [one.answeredAt, two.answeredAt] = [two.answeredAt, one.answeredAt];
    },
  ],
  [
    "an event is forgotten",
    /^2\. An outbox row/,
    ({ tables }) => first(tables.events).status = "PENDING",
  ],
  [
    "an outage made an event fail",
    /FAILED but the notifications/,
    ({ tables }) => Object.assign(first(tables.events), { status: "FAILED", last_error: "away" }),
  ],
  [
    "an outage made a notification fail",
    /FAILED but the notifications/,
    ({ tables }) => {
      first(tables.notifications).status = "FAILED";
      tables.deadLetters.push(first(tables.notifications));
    },
  ],
  [
    "an event did not arrive",
    /^3\. A published event/,
    ({ tables }) => {
      tables.processed.shift();
      tables.notifications.shift();
    },
  ],
  [
    "a notification is doubled",
    /^3\. A published event/,
    ({ tables }) =>
      tables.notifications.push({ ...first(tables.notifications), notification_id: "other" }),
  ],
  [
    "a notification is forgotten",
    /^4\. A notification ends/,
    ({ tables }) => first(tables.notifications).status = "PROCESSING",
  ],
  [
    "a FAILED notification has no dead letter",
    /^4\. A notification ends/,
    ({ tables }) => tables.deadLetters.shift(),
  ],
  [
    "a SENT notification was never sent",
    /^4\. The channel has sent/,
    ({ log }) => log.sends = log.sends.filter(({ version }) => version !== 2),
  ],
  [
    "a repeated send has another id",
    /^4\. Every send/,
    ({ log }) => first(log.sends).notification_id = "other",
  ],
  [
    "version 2 is sent before version 1",
    /in the order of their versions/,
    ({ log }) => log.sends.forEach((send) => send.line = -send.line),
  ],
  [
    "a send is repeated while nothing was wrong",
    /repeated only after a fault/,
    ({ injected }) => injected.length = 0,
  ],
  [
    "a send is repeated because of a fault elsewhere",
    /repeated only after a fault/,
    ({ injected }) => first(injected).fault.target = "notification-2",
  ],
  [
    "a finished row still has a lease",
    /^5\. A worker/,
    ({ tables }) => first(tables.notifications).leased = true,
  ],
  ["an answer is not kept", /byte for byte/, ({ tables }) => tables.answers.shift()],
  [
    "a repeated request gets another answer",
    /same request gets the same answer/,
    ({ requests }) =>
      first(requests, ({ kind }) => kind === "repeat").answer = {
        status: 200,
        body: "{}",
        replayed: true,
      },
  ],
  [
    "a key is taken for another request",
    /under a used key/,
    ({ requests }) => {
      const conflict = first(requests, ({ kind }) => kind === "key conflict");
      conflict.answer = first(requests).answer;
    },
  ],
  [
    "a refused request has left an audit row",
    /leaves nothing but its stored refusal/,
    ({ tables }) => first(tables.audit).request_id = "key-refused",
  ],
  [
    "an answer is stored for a change that was never made",
    /answer of a change has one audit row/,
    ({ tables }) =>
      tables.answers.push({ idem_key: "unknown", response_code: 200, response_body: "{}" }),
  ],
  [
    "the only client of an entitlement is refused",
    /only client that changes/,
    ({ requests }) => first(requests, ({ answer }) => answer?.status === 409).isSole = true,
  ],
  [
    "a request is never answered",
    /was answered in the end/,
    ({ requests }) => first(requests).answer = undefined,
  ],
  [
    "a message that is not an event made a notification",
    /not an event makes no notification/,
    ({ tables }) =>
      tables.notifications.push({ ...first(tables.notifications), user_id: "poison-1" }),
  ],
  [
    "a message that is not an event is not kept",
    /^6\. A copy of each message/,
    ({ givenUp }) => givenUp.length = 0,
  ],
  [
    "an event was given up",
    /exhausts the deliveries/,
    ({ givenUp }) => givenUp.push({ kind: "MAX_DELIVERIES", poison: null, has_copy: true }),
  ],
  [
    "a service ended by itself",
    /ends only when it is asked/,
    ({ runs }) => first(runs).asked = "nothing",
  ],
  [
    "events wait longer than the lease of a worker that died",
    /^5\. After the last fault/,
    ({ healing }) => healing.ms = 8_001,
  ],
  [
    "a service logs its password",
    /^No password/,
    ({ log }) => first(log.lines).text = `can't reach postgres://ann:${plantedPassword}@db`,
  ],
  [
    "a process prints an idempotency key when it ends",
    /^No password/,
    ({ log }) => log.strays.push(`Uncaught Error: ${plantedKey}-17`),
  ],
  [
    "a password is stored with an error",
    /^No password/,
    ({ said }) => said["errors of entitlement"] = `refused: ${plantedPassword}`,
  ],
  [
    "a stop has a bad exit code",
    /ends only when it is asked/,
    ({ runs }) => first(runs.slice(1)).code = 1,
  ],
];

testHarms(harms);
