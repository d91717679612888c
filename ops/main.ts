import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { type Command, text, UsageError, type Values } from "@kenri/shared/ops/command.ts";
import { Refused, ServiceApi, Unreachable } from "@kenri/shared/ops/service_api.ts";
import { environmentName } from "@kenri/shared/process/program.ts";
import { SettingsError } from "@kenri/shared/process/settings.ts";
import { print, printJson, printProblem } from "@kenri/shared/process/terminal.ts";
import { type Commands, commandsOf } from "./commands.ts";
import type { Listed, Service } from "./service.ts";
import { readSettings } from "./settings.ts";

/** Runs the command in the arguments, and returns its exit code. */
export async function main(args: string[], listed: Listed[]): Promise<number> {
  try {
    return await run(args, listed);
  } catch (error) {
    if (error instanceof UsageError || error instanceof SettingsError) {
      printProblem(`${error.message}\nSee \`deno task ops --help\`.`);
      return 2;
    }
    if (error instanceof Refused) {
      printProblem(error.message);
      return 1;
    }
    const reason = error instanceof Error ? error.message : `${error}`;
    // Answers are not checked, so one of another shape may fail anywhere.
    const isExpected = error instanceof Unreachable;
    printProblem(isExpected ? reason : `A service gave an answer that ops can't read: ${reason}`);
    return 3;
  }
}

async function run(args: string[], listed: Listed[]): Promise<number> {
  const commands = commandsOf(listed);
  const found = commandIn(commands, args);
  if (!found) {
    if (args.length > 0 && !args.includes("--help")) {
      const end = args.findIndex((word) => word.startsWith("-"));
      const words = args.slice(0, end < 0 ? undefined : end).join(" ");
      throw new UsageError(`There is no command "${words}"`);
    }
    print(usageOf(commands, listed));
    return args.length > 0 ? 0 : 2;
  }
  const [name, command] = found;
  const options = { ...commonOptions(listed), ...command.options };
  const { values, positionals } = parse(args.slice(name.split(" ").length), options, command.words);
  if (values["help"]) {
    print(`deno task ops ${command.usage}\n\n  ${command.summary}\n${command.help}`);
    return 0;
  }
  const { urlOf, token, user, without } = readSettings(listed);
  const services = deployed(listed, text(values["without"]) ?? without).map((service): Service => {
    const url = text(values[service.name]) ?? urlOf(service);
    return { ...service, api: new ServiceApi(service.name, url, text(values["token"]) ?? token) };
  });
  const { unreachable = [], ...result } = await command.run(services, {
    user,
    values,
    positionals,
  });
  if (values["json"]) printJson(result.json);
  else print(result.text);
  for (const { message } of unreachable) printProblem(message);
  if (unreachable.length > 0) return 3;
  return result.problem ? 1 : 0;
}

/** The services without those that are not deployed. */
function deployed(listed: Listed[], without: string | undefined): Listed[] {
  const missing = new Set(without?.split(",").map((name) => name.trim()).filter(Boolean));
  const unknown = missing.difference(new Set(listed.map(({ name }) => name)));
  if (unknown.size === 0) return listed.filter(({ name }) => !missing.has(name));
  throw new UsageError(`--without names an unknown service: ${[...unknown].join(", ")}`);
}

/** A command is one word or two. */
function commandIn(
  commands: Commands,
  args: string[],
): [string, Command<Service[]>] | undefined {
  for (const name of [args.slice(0, 2).join(" "), args[0] ?? ""]) {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command) return [name, command];
  }
  return undefined;
}

function commonOptions(listed: Listed[]): ParseArgsOptionsConfig {
  return {
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    token: { type: "string" },
    without: { type: "string" },
    ...Object.fromEntries(listed.map(({ name }) => [name, { type: "string" }])),
  };
}

function parse(
  args: string[],
  options: ParseArgsOptionsConfig,
  words: number,
): { values: Values; positionals: string[] } {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const tooMany = positionals[words];
    if (tooMany !== undefined) throw new Error(`Unexpected argument "${tooMany}"`);
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function usageOf(commands: Commands, listed: Listed[]): string {
  const addresses = listed.map(({ name }) => {
    const variable = environmentName(`${name}.http.host`);
    return `  ${
      `--${name} URL`.padEnd(19)
    }  address of ${name}; default: from ${variable} and _PORT`;
  });
  return `deno task ops COMMAND [options]

${Object.values(commands).map(({ usage, summary }) => `  ${usage}\n      ${summary}`).join("\n")}

Options of all commands:
  --json               print the whole answer as JSON, for scripts
  --help               explain the command
${addresses.join("\n")}
  --without NAMES      services that are not deployed, separated by commas; default: KENRI_WITHOUT
  --token TOKEN        credential, if the services require one. Prefer KENRI_TOKEN: other users of
                       this machine can read arguments

Start with \`status\`. Commands that change something have --dry-run, and each change is recorded.
Exit codes: 0 no problem, 1 a problem was found, 2 wrong arguments, 3 a service did not answer or
refused.`;
}
