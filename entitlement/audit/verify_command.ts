import { createHash } from "node:crypto";
import { addSums } from "@kenri/shared/operators/hash_sums.ts";
import { type OwnCommand, text, UsageError } from "@kenri/shared/ops/command.ts";
import { reads, type ServiceApi } from "@kenri/shared/ops/service_api.ts";
import { count, list, table, time } from "@kenri/shared/ops/text.ts";
import type { AuditProblem } from "./problem.ts";
import type { RowsAnswer, RowsQuery } from "./stray_rows.ts";
import type { ChainsAnswer, ChainsQuery } from "./verify.ts";

const chainsRoute = reads<ChainsQuery, ChainsAnswer>("audit/chains");
const rowsRoute = reads<RowsQuery, RowsAnswer>("audit/rows");

const shownAtMost = 50;

export const auditVerify: OwnCommand = {
  usage: "audit verify [--user USER] [--anchor | --against ANCHOR]",
  words: 0,
  summary: "Check that no audit row was changed, removed or added",
  options: {
    user: { type: "string" },
    anchor: { type: "boolean", default: false },
    against: { type: "string" },
  },
  help: `
  --user USER       only the entitlements and balances of this user; this does not find rows that were added
  --anchor          also print an anchor: one line that represents the current ends of all chains.
                    Keep it where those who can change the database can't change it
  --against ANCHOR  also check that all chains still contain that anchor

Follows the audit chain of each entitlement and each balance from its last row back to the first
that retention has kept. It reads every row, a page at a time. Changes may continue meanwhile; only an erasure at the
same time can lead to a wrong result. docs/audit.md describes what the check proves and what it
can't.
Exit code 1 if the audit was changed or does not contain the anchor.`,
  async run(service, { values }) {
    const user_id = text(values["user"]);
    const against = readAnchor(text(values["against"]));
    const wantsAnchor = values["anchor"] === true || against !== undefined;
    if (user_id !== undefined && wantsAnchor) {
      throw new UsageError("--user can't be combined with --anchor or --against");
    }
    const query: Query = { user_id, heads: wantsAnchor ? "true" : "false" };
    let chains = await followChains(service, { ...query, before: against?.before });
    const { before } = chains;
    const rows = user_id === undefined ? await countRows(service, before) : undefined;
    const { unhashedMarks } = chains;
    if (rows && unhashedMarks !== undefined && unhashedMarks !== rows.unhashedMarks) {
      chains = await followChains(service, { ...query, before, search: "true" });
    }
    const added = rows ? await findAdded(service, chains, rows) : [];
    const problems = [...chains.problems, ...added];
    const anchor = wantsAnchor ? anchorOf(chains) : undefined;
    const isAnchored = against === undefined || against.written === anchor;
    const { entitlements, balances, reached, unhashed, erased } = chains;
    return {
      problem: problems.length > 0 || !isAnchored,
      json: { before, entitlements, balances, rows: reached, unhashed, erased, anchor, problems },
      text: [
        list({
          entitlements,
          "balances of points": balances,
          "rows with a hash": reached,
          "versions without a hash": unhashed,
          "rows of erased users": erased,
          anchor,
        }),
        "",
        ...(problems.length > 0 ? [problemTable(problems), ""] : []),
        conclusion(problems.length, isAnchored),
      ].join("\n"),
    };
  },
};

function conclusion(problems: number, isAnchored: boolean): string {
  if (problems > 0) return `The audit was changed: ${count(problems, "problem")} found.`;
  if (!isAnchored) return "The audit chains do not contain the anchor.";
  return "The audit is unchanged.";
}

function problemTable(problems: AuditProblem[]): string {
  return table(problems, {
    "WHAT": ({ kind }) => kind,
    "CHANGED": ({ at }) => time(at),
    "USER": ({ user_id }) => user_id,
    "ITEM": ({ stock_keeping_unit }) => stock_keeping_unit,
    "VERSION": ({ version }) => version,
    "AUDIT_ID": ({ audit_id }) => audit_id,
    "": ({ says }) => says,
  }, shownAtMost);
}

type Query = Omit<ChainsQuery, "cursor">;

interface Chains {
  before: string;
  entitlements: number;
  balances: number;
  reached: number;
  marks: bigint;
  unhashed: number;
  unhashedMarks: bigint | undefined; // unknown if months of the audit were dropped
  erased: number;
  problems: AuditProblem[];
  heads: { count: number; sum: string };
}

async function followChains(service: ServiceApi, query: Query): Promise<Chains> {
  const chains: Chains = {
    ...{
      before: "",
      entitlements: 0,
      balances: 0,
      reached: 0,
      marks: 0n,
      unhashed: 0,
      unhashedMarks: 0n,
    },
    ...{ erased: 0, problems: [], heads: { count: 0, sum: "0" } },
  };
  let { before } = query;
  for await (const page of service.pages(chainsRoute, () => ({ ...query, before }))) {
    chains.before = before = page.before;
    chains.entitlements += page.entitlements;
    chains.balances += page.balances;
    chains.reached += page.reached;
    chains.marks += BigInt(page.marks);
    chains.unhashed += page.unhashed;
    if (page.unhashed_marks === undefined) chains.unhashedMarks = undefined;
    else if (chains.unhashedMarks !== undefined) {
      chains.unhashedMarks += BigInt(page.unhashed_marks);
    }
    chains.erased += page.erased;
    chains.problems.push(...page.problems);
    if (!page.heads) continue;
    chains.heads.count += page.heads.count;
    chains.heads.sum = addSums(chains.heads.sum, page.heads.sum);
  }
  return chains;
}

interface Rows {
  hashed: number;
  marks: bigint;
  unhashedMarks: bigint;
  late: number;
  problems: AuditProblem[];
}

async function countRows(service: ServiceApi, before: string): Promise<Rows> {
  const rows: Rows = { hashed: 0, marks: 0n, unhashedMarks: 0n, late: 0, problems: [] };
  for await (const page of service.pages(rowsRoute, () => ({ before }))) {
    rows.hashed += page.hashed;
    rows.marks += BigInt(page.marks);
    rows.unhashedMarks += BigInt(page.unhashed_marks);
    rows.late += page.late;
    rows.problems.push(...page.problems);
  }
  return rows;
}

// The search is slow, so it is done only if the sums differ or something else is wrong.
async function findAdded(
  service: ServiceApi,
  { before, reached, marks, problems }: Chains,
  rows: Rows,
): Promise<AuditProblem[]> {
  const isSame = rows.hashed === reached && rows.marks === marks && rows.late === 0;
  if (isSame && problems.length + rows.problems.length === 0) return [];
  const added: AuditProblem[] = [];
  const pages = service.pages(rowsRoute, () => ({ before, search: "true" as const }));
  for await (const page of pages) added.push(...page.problems);
  return added;
}

function anchorOf({ before, heads }: Chains): string {
  const digest = createHash("sha256").update(heads.sum).digest("hex");
  return `${before}/${heads.count}/${digest}`;
}

function readAnchor(written: string | undefined): { written: string; before: string } | undefined {
  if (written === undefined) return undefined;
  const [, before] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z)\/\d+\/[0-9a-f]{64}$/.exec(written) ?? [];
  if (before) return { written, before };
  throw new UsageError("--against must be an anchor as --anchor prints it");
}
