import { createHash } from "node:crypto";
import { addSums } from "@kenri/shared/operators/hash_sums.ts";
import { type Command, text, UsageError } from "./command.ts";
import type { Service } from "./service.ts";
import { count, list, table, time } from "./text.ts";

interface Problem {
  kind: string;
  user_id: string;
  stock_keeping_unit: string;
  version: number | null;
  at: string | null;
  audit_id: string | null;
  says: string;
}

const shownAtMost = 50;

export const auditVerify: Command = {
  usage: "audit verify [--user USER] [--anchor | --against ANCHOR]",
  words: 0,
  summary: "whether the audit is what was written: nothing changed, missing or added",
  options: {
    user: { type: "string" },
    anchor: { type: "boolean", default: false },
    against: { type: "string" },
  },
  help: `
  --user USER       only this user's entitlements; rows that were added are not looked for then
  --anchor          prints where all chains end, as one line to keep elsewhere
  --against ANCHOR  whether all chains still come by where they ended when that was printed

Follows each entitlement's audit from its last row back to the first that retention has left. It
reads every row, a page at a time. Changes go on meanwhile; only an erasure may make it miscount.
docs/audit.md says what it can and can't show. Exit code 1 when something is not as it was written.`,
  async run({ entitlement, values }) {
    const user_id = text(values["user"]);
    const against = readAnchor(text(values["against"]));
    const wantsHeads = values["anchor"] === true || against !== undefined;
    if (user_id !== undefined && wantsHeads) throw new UsageError("an anchor is of all users");
    const asked = { user_id, heads: `${wantsHeads}`, before: against?.before };
    let chains = await followChains(entitlement, { ...asked, search: "false" });
    const rows = user_id === undefined ? await countRows(entitlement, chains) : undefined;
    const { unhashedMarks } = chains;
    if (rows && unhashedMarks !== undefined && unhashedMarks !== rows.unhashedMarks) {
      chains = await followChains(entitlement, { ...asked, before: chains.before, search: "true" });
    }
    const added = rows ? await findAdded(entitlement, chains, rows) : [];
    const problems = [...chains.problems, ...added];
    const anchor = wantsHeads ? anchorOf(chains) : undefined;
    const isAnchored = against === undefined || against.written === anchor;
    const { before, entitlements, reached, unhashed, erased } = chains;
    return {
      problem: problems.length > 0 || !isAnchored,
      json: { before, entitlements, rows: reached, unhashed, erased, anchor, problems },
      text: [
        list([
          ["entitlements", entitlements],
          ["rows with a hash", reached],
          ["versions without", unhashed],
          ["rows of erased users", erased],
          ...(anchor ? [["anchor", anchor] as [string, string]] : []),
        ]),
        "",
        ...(problems.length > 0 ? [found(problems), ""] : []),
        sentence(problems.length, isAnchored),
      ].join("\n"),
    };
  },
};

function sentence(problems: number, isAnchored: boolean): string {
  if (problems > 0) return `${count(problems, "place")} where the audit is not what was written.`;
  if (!isAnchored) return "The chains do not come by where they ended when that was printed.";
  return "The audit is what was written.";
}

function found(problems: Problem[]): string {
  const more = problems.length - shownAtMost;
  return [
    table(
      ["WHAT", "CHANGED", "USER", "ITEM", "VERSION", "AUDIT_ID", ""],
      problems.slice(0, shownAtMost).map((one) => [
        one.kind,
        time(one.at),
        one.user_id,
        one.stock_keeping_unit,
        one.version,
        one.audit_id,
        one.says,
      ]),
    ),
    ...(more > 0 ? [`… and ${more} more`] : []),
  ].join("\n");
}

interface Chains {
  before: string;
  entitlements: number;
  reached: number;
  marks: bigint;
  unhashed: number;
  unhashedMarks: bigint | undefined; // unknown when months were dropped
  erased: number;
  problems: Problem[];
  heads: { count: number; sum: string };
}

async function followChains(
  entitlement: Service,
  asked: {
    user_id: string | undefined;
    heads: string;
    before: string | undefined;
    search: string;
  },
): Promise<Chains> {
  const chains: Chains = {
    ...{ before: "", entitlements: 0, reached: 0, marks: 0n, unhashed: 0, unhashedMarks: 0n },
    ...{ erased: 0, problems: [], heads: { count: 0, sum: "0" } },
  };
  let { before } = asked;
  for await (const page of entitlement.lookPages("audit/chains", () => ({ ...asked, before }))) {
    chains.before = before = page.before;
    chains.entitlements += page.entitlements;
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
  problems: Problem[];
}

async function countRows(entitlement: Service, { before }: Chains): Promise<Rows> {
  const rows: Rows = { hashed: 0, marks: 0n, unhashedMarks: 0n, late: 0, problems: [] };
  for await (const page of entitlement.lookPages("audit/rows", () => ({ before }))) {
    rows.hashed += page.hashed;
    rows.marks += BigInt(page.marks);
    rows.unhashedMarks += BigInt(page.unhashed_marks);
    rows.late += page.late;
    rows.problems.push(...page.problems);
  }
  return rows;
}

/** Added up first, and looked for only when something is wrong, because that takes long. */
async function findAdded(
  entitlement: Service,
  { before, reached, marks, problems }: Chains,
  rows: Rows,
): Promise<Problem[]> {
  const isSame = rows.hashed === reached && rows.marks === marks && rows.late === 0;
  if (isSame && problems.length + rows.problems.length === 0) return [];
  const added: Problem[] = [];
  for await (
    const page of entitlement.lookPages("audit/rows", () => ({ before, search: "true" }))
  ) added.push(...page.problems);
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
  throw new UsageError("--against wants an anchor as --anchor prints it");
}
