// docs/failure-modes.md, docs/runbook.md and the alerts refer to each other, and to things that
// exist.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { anchorOf, codeIn, read, sectionsOf } from "../support/pages.ts";
import { alerts } from "../telemetry/promtool.ts";

interface Mode {
  id: string;
  alerts: string[];
  log: string[];
  remedies: string[];
}

const runbook = sectionsOf(read("docs/runbook.md"), "##");
const modes = [...sectionsOf(read("docs/failure-modes.md"), "###")].map(([heading, section]) => {
  const item = (name: string) => {
    const [, text = ""] =
      section.match(new RegExp(`- \\*\\*${name}\\*\\*:\\s+([^]*?)(?=\n- |\n*$)`)) ??
        [];
    assert.notEqual(text, "", `${heading} has no ${name}`);
    return text;
  };
  item("Symptom");
  item("Effect");
  const signals = item("Signal").split(";");
  const named = (kind: string) =>
    signals.filter((signal) => signal.trim().startsWith(kind)).flatMap(codeIn);
  const [alerts, metrics, log] = [named("alert"), named("metric"), named("log")];
  assert.ok(alerts.length + metrics.length + log.length + named("command").length > 0, heading);
  const remedies = [...item("Remedy").matchAll(/\(runbook\.md#([\w-]+)\)/g)]
    .map(([, anchor = ""]) => anchor);
  return { id: heading.split(" ")[0] ?? "", alerts, log, remedies };
});

Deno.test("every failure mode has an id of its own and leads to a section of the runbook", () => {
  assert.ok(modes.length > 0);
  assert.equal(new Set(modes.map(({ id }) => id)).size, modes.length);
  const anchors = [...runbook.keys()].map(anchorOf);
  for (const { id, remedies } of modes) {
    assert.match(id, /^[A-Z]\d+$/);
    assert.ok(remedies.length > 0, id);
    for (const anchor of remedies) assert.ok(anchors.includes(anchor), `${id}: #${anchor}`);
  }
});

Deno.test("the sections of the runbook name exactly the failure modes that lead to them", () => {
  for (const [heading, section] of runbook) {
    const leading = modes.filter(({ remedies }) => remedies.includes(anchorOf(heading)));
    const [, named = ""] = section.match(/^\*\*For\*\* (.*)\.$/m) ?? [];
    assert.equal(named, leading.map(({ id }) => id).join(", "), heading);
  }
});

Deno.test("every alert has a sentence about the problem and leads to its failure mode", () => {
  const shown = modes.flatMap((mode) => mode.alerts.map((alert) => [alert, mode.id]));
  const given = alerts.map(({ alert, labels }) => [alert, labels.failure_mode]);
  assert.deepEqual(shown.sort(), given.sort());
  for (const { alert, labels, annotations } of alerts) {
    assert.match(labels.severity, /^(page|ticket)$/, alert);
    assert.match(annotations.summary, /^\S+ .*[^.]$/, alert);
    const { remedies } = modes.find(({ id }) => id === labels.failure_mode) as Mode;
    const links = remedies.map((anchor) => `docs/runbook.md#${anchor}`);
    assert.ok(links.includes(annotations.runbook), alert);
  }
});

Deno.test("the runbook links only to sections that exist", () => {
  const anchors = [...runbook.keys()].map(anchorOf);
  for (const [heading, section] of runbook) {
    for (const [, anchor = ""] of section.matchAll(/\]\(#([\w-]+)\)/g)) {
      assert.ok(anchors.includes(anchor), `#${anchor} in "${heading}"`);
    }
  }
});

Deno.test("the log messages that are given as signals are in the sources", () => {
  const sources = [
    "account",
    "entitlement",
    "gateway",
    "matchmaking",
    "notification",
    "shared",
    "migrations",
  ]
    .flatMap((folder) =>
      readdirSync(new URL(`../../${folder}`, import.meta.url), { recursive: true })
        .filter((name) => `${name}`.endsWith(".ts"))
        .map((name) => read(`${folder}/${name}`))
    ).join("\n");
  for (const { id, log } of modes) {
    for (const line of log) {
      assert.ok(sources.includes(line), `"${line}" of ${id}`);
    }
  }
});
