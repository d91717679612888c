import { inboxesOf, inboxOfAnswers } from "../../shared/nats/connection.ts";
import type { NatsUse } from "../../shared/nats/nats_use.ts";
import type { ProvisionConfig } from "./config.ts";

// The users of NATS for the names in the settings. deploy/nats-users.conf has them for the default
// names.

type Uses = ProvisionConfig["uses"];

interface Durable {
  stream: string;
  durable: string;
  subject?: string | undefined; // if it receives the messages of one subject only
}

export function usersFile({ uses }: Pick<ProvisionConfig, "uses">): string {
  const users = Object.entries(uses)
    .map(([name, use]) => user(name, mayPublish(use, uses), maySubscribe(name, use)));
  return `# The users of NATS. Each service has only the permissions that it needs, for the names of streams,
# subjects and consumers in its settings. For other names \`deno task provision --users\` prints this
# file.
#
# No service may make or change a stream or a consumer, because a user who may can empty a stream,
# read other streams, and publish in the name of others. Only the user "provision" may, and only the
# command \`deno task provision\` has its password. Each user gets answers in inboxes of its own, which
# no other user can read.
authorization {
  users: [
${[...users, provisionUser(uses)].join("\n")}
    {
      # For operators: \`deno task recover\` and \`redeliver\`, and the nats command.
      user: operator
      password: $OPERATOR_NATS_PASSWORD
    }
  ]
}
`;
}

function mayPublish(use: NatsUse, uses: Uses): string[] {
  const { streams = [], inboxes = [], reads = [], signals = [], asks = [], answers = [] } = use;
  const askers = Object.keys(uses)
    .filter((name) => uses[name]?.asks?.some((subject) => answers.includes(subject)));
  return [
    ...streams.flatMap(({ subjects }) => subjects),
    ...signals,
    ...asks,
    "$JS.API.INFO",
    ...streams.map(({ name }) => `$JS.API.STREAM.INFO.${name}`),
    ...durablesOf(use).flatMap(({ stream, durable }) => [
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
      `$JS.ACK.${stream}.${durable}.>`,
    ]),
    ...inboxes.map(({ stream }) => `$JS.API.STREAM.MSG.GET.${stream.name}`), // a copy of a dead message
    ...reads.flatMap(({ name }) => [
      `$JS.API.STREAM.INFO.${name}`,
      `$JS.API.STREAM.MSG.GET.${name}`,
    ]),
    ...askers.map((name) => `${inboxOfAnswers(name)}.>`),
  ];
}

function maySubscribe(name: string, { answers = [], reads = [], hears = [] }: NatsUse): string[] {
  return [
    ...answers,
    ...hears,
    ...reads.flatMap(({ subjects }) => subjects),
    `${inboxesOf(name)}.>`,
  ];
}

function provisionUser(uses: Uses): string {
  const durables = Object.values(uses).flatMap(durablesOf);
  return user("provision", [
    "$JS.API.INFO",
    ...streamsOf(uses).flatMap((stream) =>
      ["INFO", "CREATE", "UPDATE"].map((verb) => `$JS.API.STREAM.${verb}.${stream}`)
    ),
    ...durables.flatMap(({ stream, durable, subject }) => [
      `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
      `$JS.API.CONSUMER.CREATE.${stream}.${durable}`, // also for the command of an earlier release
      ...(subject ? [`$JS.API.CONSUMER.CREATE.${stream}.${durable}.${subject}`] : []),
    ]),
  ], maySubscribe("provision", {}));
}

function durablesOf({ inboxes = [] }: NatsUse): Durable[] {
  return inboxes.flatMap(({ stream, consumer, advisories }) => [
    { stream: stream.name, durable: consumer.durable, subject: consumer.subject },
    ...advisories.map(({ stream, durable }) => ({ stream: stream.name, durable })),
  ]);
}

function streamsOf(uses: Uses): string[] {
  const names = Object.values(uses).flatMap((use) => [
    ...(use.streams ?? []).map(({ name }) => name),
    ...durablesOf(use).map(({ stream }) => stream),
  ]);
  return [...new Set(names)];
}

function user(name: string, publish: string[], subscribe: string[]): string {
  const lines = (subjects: string[]) =>
    [...new Set(subjects)].map((subject) => `          ${quoted(subject)}`).join("\n");
  return `    {
      user: ${name}
      password: $${name.toUpperCase()}_NATS_PASSWORD
      permissions: {
        publish: [
${lines(publish)}
        ]
        subscribe: [
${lines(subscribe)}
        ]
      }
    }`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
