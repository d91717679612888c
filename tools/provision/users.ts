import type { ProvisionConfig } from "./config.ts";

// The users of NATS for the names in the settings. deploy/nats-users.conf has them for the default
// names.

export function usersFile({ published, consumed }: Omit<ProvisionConfig, "nats">): string {
  const { stream, consumer, advisories } = consumed;
  const durables = [
    { stream: stream.name, durable: consumer.durable },
    ...advisories.map(({ stream, durable }) => ({ stream: stream.name, durable })),
  ];
  const streams = [...new Set([published.name, ...durables.map(({ stream }) => stream)])];
  const check = `${published.subjects[0]}.check`;
  return `# The users of NATS. Each service has only the permissions that it needs, for the stream
# ${quoted(stream.name)}, the subject ${stream.subjects.map(quoted).join(", ")} and the durable
# ${quoted(consumer.durable)}. For other names \`deno task provision --users\`
# prints this file.
#
# No service may make or change a stream or a consumer, because a user who may can empty a stream,
# read other streams, and publish in the name of others. Only the user "provision" may, and only the
# command \`deno task provision\` has its password. Each user gets answers in inboxes of its own, which
# no other user can read.
authorization {
  users: [
${
    user("entitlement", [
      ...published.subjects,
      check,
      "$JS.API.INFO",
      `$JS.API.STREAM.INFO.${published.name}`,
    ], ["_INBOX.entitlement.>"])
  }
${
    user("notification", [
      "$JS.API.INFO",
      ...durables.flatMap(({ stream, durable }) => [
        `$JS.API.STREAM.INFO.${stream}`,
        `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
        `$JS.ACK.${stream}.${durable}.>`,
      ]),
      `$JS.API.STREAM.MSG.GET.${stream.name}`, // a copy of a dead message
      "_INBOX.entitlement.checks.>",
    ], [check, "_INBOX.notification.>"])
  }
${
    user("provision", [
      "$JS.API.INFO",
      ...streams.flatMap((stream) =>
        ["INFO", "CREATE", "UPDATE"].map((verb) => `$JS.API.STREAM.${verb}.${stream}`)
      ),
      ...durables.flatMap(({ stream, durable }) =>
        ["INFO", "CREATE"].map((verb) => `$JS.API.CONSUMER.${verb}.${stream}.${durable}`)
      ),
    ], ["_INBOX.provision.>"])
  }
    {
      # For operators: \`deno task recover\` and \`redeliver\`, and the nats command.
      user: operator
      password: $OPERATOR_NATS_PASSWORD
    }
  ]
}
`;
}

function user(name: string, publish: string[], subscribe: string[]): string {
  const lines = (subjects: string[]) =>
    subjects.map((subject) => `          ${quoted(subject)}`).join("\n");
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
