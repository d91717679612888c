// The protocol of claim, lease, token and settle for five tables, and the way of an event from the
// outbox to its user, in every order of steps and with every combination of a few faults
// (docs/reliability/model.md).
import assert from "node:assert/strict";
import { explore, type Explored } from "./model/explore.ts";
import { callsOf, type Habits, openModel, type Scope, systemOf } from "./model/model.ts";
import { orderVariants } from "./model/order_variants.ts";
import { type Variant, variants } from "./model/variants.ts";

interface Exploration {
  name: string;
  scope: Scope;
  habits?: Partial<Habits>;
}

const noEvents = { events: [], relays: 0, consumers: 0, deliverers: 0 };

const explorations: Exploration[] = [
  {
    name: "Publishing",
    scope: { events: [0, 1], relays: 2, consumers: 0, deliverers: 0, faults: 2 },
  },
  {
    name: "Publishing, with the check for loss in steps",
    scope: { events: [0, 1], relays: 2, consumers: 0, deliverers: 0, faults: 1 },
    habits: { checksInSteps: true },
  },
  {
    name: "Publishing, without restarts of crashed relays",
    scope: { events: [0, 1], relays: 2, consumers: 0, deliverers: 0, faults: 2 },
    habits: { startsAgain: false },
  },
  {
    name: "Publishing, with another key",
    scope: { events: [0, 1, 3], relays: 1, consumers: 0, deliverers: 0, faults: 1 },
  },
  {
    name: "Publishing, with three events of a key",
    scope: { events: [0, 1, 2], relays: 2, consumers: 0, deliverers: 0, faults: 1 },
  },
  {
    name: "Receiving and sending",
    scope: { events: [0, 1], relays: 0, consumers: 2, deliverers: 2, faults: 2 },
  },
  {
    name: "Sending, with lanes that pause",
    scope: { events: [0, 3], relays: 0, consumers: 1, deliverers: 1, faults: 2 },
    habits: { putsOff: true },
  },
  {
    name: "Firing reminders",
    scope: { ...noEvents, reminders: [0, 1], firers: 2, faults: 3 },
  },
  {
    name: "Firing reminders, with another key",
    scope: { ...noEvents, reminders: [0, 1, 3], firers: 2, faults: 1 },
  },
  {
    name: "Firing reminders, with three of a key",
    scope: { ...noEvents, reminders: [0, 1, 2], firers: 2, faults: 2 },
  },
  {
    name: "Granting points",
    scope: { ...noEvents, reservations: [0, 3], granters: 2, asks: ["grant", "spend"], faults: 1 },
  },
  {
    name: "Granting points, with two faults",
    scope: { ...noEvents, reservations: [0, 3], granters: 2, asks: ["spend"], faults: 2 },
  },
  {
    name: "Sending orders",
    scope: { ...noEvents, orders: [0, 1], workers: 2, faults: 1 },
  },
  {
    name: "Sending orders, with two faults",
    scope: { ...noEvents, orders: [0, 1], workers: 1, faults: 2 },
  },
  {
    name: "Sending orders, of which the ledger knows one",
    scope: { ...noEvents, orders: [0, 1], known: [0], workers: 2, faults: 1 },
  },
  {
    name: "End to end",
    scope: { events: [0, 1], relays: 2, consumers: 1, deliverers: 1, faults: 1 },
    habits: { claimsBeside: false },
  },
  {
    name: "End to end, with a reconciliation",
    scope: { events: [0], relays: 2, consumers: 1, deliverers: 1, faults: 1, reconciles: true },
  },
];

const page = (await Deno.readTextFile(new URL("../../docs/reliability/model.md", import.meta.url)))
  .replaceAll(/ +/g, " "); // its tables are aligned

Deno.test("no reachable state breaks a rule, and a quiet state can be reached from each", async (t) => {
  await using model = openModel();
  for (const { name, scope, habits } of explorations) {
    await t.step(name, async () => {
      const calls = callsOf(model);
      const system = systemOf({ ...model, habits: { ...model.habits, ...habits } }, scope);
      const { found, ...figures } = await explore(system);
      assert.equal(found, undefined);
      const row = rowOf(name, scope, figures);
      console.log(`${row} ${callsOf(model) - calls} calls of real functions`);
      assert.ok(page.includes(row), `docs/reliability/model.md does not contain: ${row}`);
    });
  }
});

Deno.test("the model finds what is broken on purpose", async (t) => {
  for (const variant of [...variants, ...orderVariants]) {
    await t.step(variant.name, async () => {
      await using model = openModel(variant);
      const { found } = await explore(systemOf(model, variant.scope));
      assert.equal(found?.rule, variant.breaks);
      const section = sectionOf(variant, found.trace);
      console.log(section);
      assert.ok(page.includes(section), `docs/reliability/model.md does not contain:\n${section}`);
    });
  }
});

function rowOf(
  name: string,
  { events, reminders = [], reservations = [], orders = [], ...scope }: Scope,
  { states, transitions }: Omit<Explored, "found">,
): string {
  const { relays, consumers, deliverers, firers = 0, granters = 0, workers = 0 } = scope;
  const { asks = [], faults } = scope;
  const rows = [events, reminders, reservations, orders, asks].flat().length;
  const processes = [relays, consumers, deliverers, firers, granters, workers];
  const cells = [rows, ...processes, faults, states, transitions];
  return `| ${[name, ...cells.map((cell) => cell.toLocaleString("en"))].join(" | ")} |`;
}

function sectionOf({ name, breaks }: Variant, trace: string[]): string {
  const steps = trace.map((step, at) => `${at + 1}. ${step}`).join("\n");
  return `### ${name}\n\nBroken: ${breaks}.\n\n${steps}\n`;
}
