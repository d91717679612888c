import type { DeadLetterCounts } from "@kenri/shared/operators/dead_letters.ts";
import type { Command } from "@kenri/shared/ops/command.ts";
import type { Figures, Looks, ServiceStatus } from "@kenri/shared/operators/looks.ts";
import { type NoFields, reads } from "@kenri/shared/ops/service_api.ts";
import { age, ageOf, list, table, widthOf } from "@kenri/shared/ops/text.ts";
import { askEach, type Service } from "./service.ts";

const waitsTooLongSeconds = 60;
const shownErrors = 10;

const route = reads<NoFields, ServiceStatus>("status");

export const status: Command<Service[]> = {
  usage: "status",
  words: 0,
  summary: "Show whether events flow, what is waiting and what failed; start here",
  options: {},
  help: `
Asks every service for its status. Exit code 1 if a person should act: a service is not connected to
NATS, something has waited for over a minute, there are dead letters, an event was not received, or
the last reconciliation was over three hours ago. Exit code 3 if a service did not answer.`,
  async run(services) {
    const shown = services.filter(({ looks }) => looks.status);
    const { answered, unreachable } = await askEach(shown, ({ api }) => api.ask(route, {}));
    const answerOf = new Map(answered.map(({ service, answer }) => [service.name, answer]));
    const errors = answered.flatMap(({ answer }) => answer.errors ?? []);
    const problems = [
      ...answered.flatMap(({ service, answer }) => problemsOf(service, answer)),
      ...(errors.length > 0 ? ["there are dead letters: ops dead errors, ops dead list"] : []),
    ];
    const isWell = problems.length + unreachable.length === 0;
    return {
      problem: problems.length > 0,
      unreachable,
      json: {
        ...Object.fromEntries(shown.map(({ name }) => [name, answerOf.get(name) ?? null])),
        problems,
      },
      text: [
        figureList(shown.map(({ name, looks }) => {
          const answer = answerOf.get(name);
          return { name, figures: answer && figuresOf(looks, answer) };
        })),
        ...(errors.length > 0 ? [errorTable(errors.slice(0, shownErrors)), ""] : []),
        ...(isWell ? ["All is well."] : problems.map((problem) => `! ${problem}`)),
      ].join("\n"),
    };
  },
};

export function errorTable(errors: DeadLetterCounts["errors"]): string {
  return table(errors, {
    "LAYER": ({ layer }) => layer,
    "COUNT": ({ count }) => count,
    "OLDEST": ({ oldest }) => ageOf(oldest),
    "ERROR": ({ error }) => error,
  });
}

function problemsOf({ name, looks }: Service, answer: ServiceStatus): string[] {
  const late = looks.status?.queues.flatMap(({ noun, where, command, of }) => {
    const { oldest_waiting_seconds: seconds } = of(answer);
    if (seconds === null || seconds < waitsTooLongSeconds) return [];
    const waited = words(
      /^[aeiou]/.test(noun) ? "an" : "a",
      noun,
      "has waited",
      age(seconds),
      where,
    );
    return [`${waited}: ops ${command}`];
  });
  return [
    ...(answer.nats === false ? [`${name} is not connected to NATS`] : []),
    ...(late ?? []),
    ...(looks.status?.problems?.(answer) ?? []),
  ];
}

function figuresOf({ status, deadLetters = {} }: Looks, answer: ServiceStatus): Figures {
  const queues = status?.queues.map(({ noun, where, of }) => {
    const { waiting, oldest_waiting_seconds } = of(answer);
    const shown = waiting === 0 ? "0" : `${waiting}, the oldest for ${age(oldest_waiting_seconds)}`;
    return [words(`${noun}s`, "waiting", where), shown];
  });
  const dead = Object.keys(deadLetters).map((layer) => {
    const errors = answer.errors?.filter((one) => one.layer === layer) ?? [];
    return [`dead letters (${layer})`, errors.reduce((sum, { count }) => sum + count, 0)];
  });
  return {
    ...Object.fromEntries(queues ?? []),
    ...status?.figures?.(answer),
    ...Object.fromEntries(dead),
  };
}

function words(...given: (string | undefined)[]): string {
  return given.filter((word) => word !== undefined).join(" ");
}

// Each service with its figures below it. All values are in one column.
function figureList(shown: { name: string; figures: Figures | undefined }[]): string {
  const width = Math.max(0, ...shown.flatMap(({ figures = {} }) => widthOf(figures)));
  return shown.map(({ name, figures }) =>
    figures ? `${name}\n${list(figures, width).replaceAll(/^/gm, "  ")}\n` : `${name}: no answer\n`
  ).join("\n");
}
