import {
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  moment,
  text,
  wholeNumber,
} from "./command.ts";
import { ago, count, list, table, time } from "./text.ts";

interface Unreceived {
  event_id: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  version: number;
  state: string;
  mended?: boolean;
  mends?: number;
  found_at?: string;
}

const shownAtMost = 50;

export const reconcile: Command = {
  usage: "reconcile [--since TIME] [--grace SECONDS]",
  words: 0,
  summary: "proves that every change was received, and mends what was not",
  options: { since: { type: "string" }, grace: { type: "string" }, ...changeOptions },
  help: `
  --since TIME  check the changes since then: a time, or how long ago (24h; at most 30d make sense)
  --grace N     what was published in the last N seconds is still on its way; by default a minute
                more than the duplicate window, within which nothing can be published again${changeHelp}

The service does the same by itself every hour for all that is new. An event that is MISSING is put
back to be published, from the audit if the outbox has deleted it. DEAD is for \`ops dead\`, IN_FLIGHT
is on its way, TOO_OLD was before what the other service remembers.
Exit code 1 when something is missing or dead.`,
  async run(call) {
    const dryRun = call.values["dry-run"] === true;
    const reason = text(call.values["reason"]) ?? "reconciliation on demand";
    const body = {
      since: moment("since", text(call.values["since"]) ?? "24h"),
      grace_seconds: wholeNumber(call, "grace", 86_400),
      ...changeFields({ ...call, values: { ...call.values, reason } }),
    };
    const states: Record<string, number> = {};
    const unreceived: Unreceived[] = [];
    for await (const page of call.entitlement.changePages("reconcile", () => body)) {
      for (const [state, number] of Object.entries<number>(page.states)) {
        states[state] = (states[state] ?? 0) + number;
      }
      unreceived.push(...page.unreceived);
    }
    const checked = Object.values(states).reduce((sum, number) => sum + number, 0);
    const mended = unreceived.filter((one) => one.mended).length;
    return {
      problem: unreceived.length > 0,
      json: { since: body.since, checked, states, mended, unreceived },
      text: [
        list([
          ["changes since", time(body.since)],
          ["checked", checked],
          ...["RECEIVED", "IN_FLIGHT", "MISSING", "DEAD", "TOO_OLD"].map((state) =>
            [state.toLowerCase().replace("_", " "), states[state] ?? 0] as [string, number]
          ),
        ]),
        "",
        ...(unreceived.length > 0 ? [gaps(unreceived), ""] : []),
        sentence(states, mended, dryRun),
      ].join("\n"),
    };
  },
};

function sentence(states: Record<string, number>, mended: number, dryRun: boolean): string {
  if (!states["MISSING"] && !states["DEAD"]) {
    return states["IN_FLIGHT"]
      ? "Nothing is missing; some are still on their way."
      : "Every change was received.";
  }
  if (dryRun) return `${count(states["MISSING"] ?? 0, "event")} would be published again.`;
  return `${count(mended, "event")} will be published again. Check once more in a minute.`;
}

function gaps(unreceived: Unreceived[]): string {
  const more = unreceived.length - shownAtMost;
  return [
    table(
      ["STATE", "CHANGED", "EVENT_ID", "USER", "ITEM", "VERSION"],
      unreceived.slice(0, shownAtMost).map((one) => [
        one.state,
        time(one.occurred_at),
        one.event_id,
        one.user_id,
        one.stock_keeping_unit,
        one.version,
      ]),
    ),
    ...(more > 0 ? [`… and ${more} more`] : []),
  ].join("\n");
}

export const unreceived: Command = {
  usage: "unreceived",
  words: 0,
  summary: "what the hourly check found missing, and until when all is proven",
  options: {},
  help: `
Exit code 1 when there is something.`,
  async run({ entitlement }) {
    const state = await entitlement.look("reconciliation");
    const open: Unreceived[] = state.unreceived;
    return {
      problem: open.length > 0,
      json: state,
      text: [
        list([
          ["all received until", `${time(state.proven_until)}, ${ago(state.proven_until)}`],
          ["last run", ago(state.checked_at)],
          ["but", count(open.length, "event")],
        ]),
        ...(open.length > 0 ? ["", gaps(open)] : []),
      ].join("\n"),
    };
  },
};
