import { type OwnCommand, text } from "@kenri/shared/ops/command.ts";
import { reads } from "@kenri/shared/ops/service_api.ts";
import { count, list, table } from "@kenri/shared/ops/text.ts";
import { auditVerify } from "../../audit/verify_command.ts";
import type { PointsProblem, PointsVerified, PointsVerifyQuery } from "./verify.ts";

const route = reads<PointsVerifyQuery, PointsVerified>("points/verify");

const shownAtMost = 50;

const meanings: Record<PointsProblem["kind"], string> = {
  BALANCE: "the balance is not that of its last transaction",
  NEGATIVE: "the balance is below zero",
  GAP: "the transaction before this one is missing",
  SUM: "the balance after it is not the one before plus its points",
  EXTRA: "the balance does not know this transaction",
  AUDIT: "it has no audit row, or one that says something else",
  RESERVATION: "the reservation is done, but its transaction is missing",
};

export const pointsVerify: OwnCommand = {
  usage: "points verify [--user USER]",
  words: 0,
  summary: "Check that balances, transactions, audit and reservations of points agree",
  options: { user: { type: "string" } },
  help: `
  --user USER     only the points of this user

Each balance must be the sum of its transactions and its version their number, none may be negative,
each transaction must have its audit row, and each reservation of points that is done its transaction.
Then the audit chains are verified, as by \`ops audit verify\`. It reads every row, a page at a time,
and changes may continue meanwhile.
Exit code 1 if something does not agree.`,
  async run(service, call) {
    const user_id = text(call.values["user"]);
    const sum = { balances: 0, transactions: 0, "reservations done": 0 };
    const problems: PointsProblem[] = [];
    for await (const page of service.pages(route, () => ({ user_id }))) {
      sum.balances += page.balances;
      sum.transactions += page.transactions;
      sum["reservations done"] += page.reservations;
      problems.push(...page.problems);
    }
    const chains = await auditVerify.run(service, call);
    return {
      problem: problems.length > 0 || chains.problem,
      json: { ...sum, problems, audit: chains.json },
      text: [
        list(sum),
        "",
        ...(problems.length > 0 ? [problemTable(problems), ""] : []),
        problems.length > 0
          ? `The points do not agree: ${count(problems.length, "problem")} found.`
          : "All points agree.",
        "",
        chains.text,
      ].join("\n"),
    };
  },
};

function problemTable(problems: PointsProblem[]): string {
  return table(problems, {
    "WHAT": ({ kind }) => kind,
    "USER": ({ user_id }) => user_id,
    "UNIT": ({ unit }) => unit,
    "VERSION": ({ version }) => version,
    "ID": ({ id }) => id,
    "": ({ kind }) => meanings[kind],
  }, shownAtMost);
}
