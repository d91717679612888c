import { type Call, type Command, UsageError } from "@kenri/shared/ops/command.ts";
import type { ServiceApi } from "@kenri/shared/ops/service_api.ts";
import { waiting } from "@kenri/shared/ops/waiting.ts";
import { deadErrors, deadList, deadShow } from "./dead.ts";
import { eraseUser } from "./erase_user.ts";
import { operations } from "./operations.ts";
import { deadSendBack } from "./send_back.ts";
import type { Listed, Service } from "./service.ts";
import { status } from "./status.ts";
import { timeline } from "./timeline.ts";

export type Commands = Record<string, Command<Service[]>>;

/** The commands that ask every service, and those that a service adds, which ask only this one. */
export function commandsOf(listed: Listed[]): Commands {
  return {
    "status": status,
    "timeline": timeline,
    "dead list": deadList(listed),
    "dead errors": deadErrors,
    "dead show": deadShow,
    "dead send-back": deadSendBack,
    ...Object.assign({}, ...listed.map(ownCommands)),
    "erase-user": eraseUser,
    "operations": operations,
  };
}

function ownCommands({ name, looks }: Listed): Commands {
  const queues = looks.status?.queues.map((queue) => [queue.command, waiting(queue)] as const);
  const own = [...queues ?? [], ...Object.entries(looks.commands ?? {})];
  const entries = own.map(([words, command]) => [words, {
    ...command,
    run: (services: Service[], call: Call) => command.run(apiOf(services, name), call),
  }]);
  return Object.fromEntries(entries);
}

function apiOf(services: Service[], name: string): ServiceApi {
  const service = services.find((one) => one.name === name);
  if (!service) throw new UsageError(`this command asks ${name}, which is not deployed`);
  return service.api;
}
