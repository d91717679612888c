import {
  changeFields,
  changeHelp,
  changeOptions,
  moment,
  type OwnCommand,
  text,
  wholeNumber,
} from "@kenri/shared/ops/command.ts";
import { changes, type NoFields, reads } from "@kenri/shared/ops/service_api.ts";
import { ago, count, list, table, time } from "@kenri/shared/ops/text.ts";
import type { ReconcileAnswer, ReconcileBody, Reconciliation } from "./on_demand.ts";

const shownAtMost = 50;
const defaultReason = "reconciliation on demand";
const states = ["RECEIVED", "IN_FLIGHT", "MISSING", "DEAD", "TOO_OLD"];

export const reconcile: OwnCommand = {
  usage: "reconcile [--since TIME] [--grace SECONDS]",
  words: 0,
  summary: "Check that every change was received, and republish missing events",
  options: { since: { type: "string" }, grace: { type: "string" }, ...changeOptions },
  help: `
  --since TIME    check the changes since then: a time, or an age; default: 24h. The notification
                  service remembers what it received for 30 days
  --grace N       count events published in the last N seconds as in flight; default: the duplicate
                  window and a minute, because the stream drops what is republished within the
                  duplicate window${changeHelp(`default: "${defaultReason}"`)}

The entitlement service does the same every hour with the new changes. An event that is MISSING is
republished, from the audit if the outbox has deleted it. DEAD is a dead letter: see \`ops dead\`.
IN_FLIGHT is on its way. TOO_OLD is older than what the notification service remembers.
Exit code 1 if something is missing or dead.`,
  async run(service, call) {
    const dryRun = call.values["dry-run"] === true;
    const reason = text(call.values["reason"]) ?? defaultReason;
    const body = {
      since: moment("since", text(call.values["since"]) ?? "24h"),
      grace_seconds: wholeNumber(call, "grace", 86_400),
      ...changeFields({ ...call, values: { ...call.values, reason } }),
    };
    const counts: Counts = {};
    const unreceived: ReconcileAnswer["unreceived"] = [];
    for await (const page of service.pages(route, () => body)) {
      for (const [state, number] of Object.entries(page.states)) {
        counts[state] = (counts[state] ?? 0) + number;
      }
      unreceived.push(...page.unreceived);
    }
    const checked = Object.values(counts).reduce((sum, number) => sum + number, 0);
    const mended = unreceived.filter((one) => one.mended).length;
    return {
      problem: unreceived.length > 0,
      json: { since: body.since, checked, states: counts, mended, unreceived },
      text: [
        list({
          "changes since": time(body.since),
          checked,
          ...Object.fromEntries(
            states.map((state) => [state.toLowerCase().replace("_", " "), counts[state] ?? 0]),
          ),
        }),
        "",
        ...(unreceived.length > 0 ? [unreceivedTable(unreceived), ""] : []),
        conclusion(counts, mended, dryRun),
      ].join("\n"),
    };
  },
};

const route = changes<ReconcileBody, ReconcileAnswer>("reconcile");
type Counts = Record<string, number>; // by state

function conclusion(counts: Counts, mended: number, dryRun: boolean): string {
  if (!counts["MISSING"] && !counts["DEAD"]) {
    return counts["IN_FLIGHT"]
      ? "Nothing is missing; some events are still on their way."
      : "Every change was received.";
  }
  if (dryRun) return `${count(counts["MISSING"] ?? 0, "event")} would be republished.`;
  return `${count(mended, "event")} will be republished. Check again in a minute.`;
}

export const unreceived: OwnCommand = {
  usage: "unreceived",
  words: 0,
  summary: "List the events that the hourly check found missing, and how far it has checked",
  options: {},
  help: `
Exit code 1 if there are any.`,
  async run(service) {
    const state = await service.ask(reads<NoFields, Reconciliation>("reconciliation"), {});
    const { unreceived } = state;
    return {
      problem: unreceived.length > 0,
      json: state,
      text: [
        list({
          "all events received until": `${time(state.proven_until)}, ${ago(state.proven_until)}`,
          except: count(unreceived.length, "event"),
          "last check": ago(state.checked_at),
        }),
        ...(unreceived.length > 0 ? ["", unreceivedTable(unreceived)] : []),
      ].join("\n"),
    };
  },
};

type Unreceived = ReconcileAnswer["unreceived"] | Reconciliation["unreceived"];

function unreceivedTable(unreceived: Unreceived): string {
  return table<Unreceived[number]>(unreceived, {
    "STATE": ({ state }) => state,
    "CHANGED": ({ occurred_at }) => time(occurred_at),
    "EVENT_ID": ({ event_id }) => event_id,
    "USER": ({ user_id }) => user_id,
    "ITEM": ({ stock_keeping_unit }) => stock_keeping_unit,
    "VERSION": ({ version }) => version,
  }, shownAtMost);
}
