// deno task ops: the command line for operators. It asks both services over HTTP.
import { parseArgs } from "node:util";
import { SettingsError } from "@kenri/shared/process/settings.ts";
import { print, printJson, printProblem } from "@kenri/shared/process/terminal.ts";
import { Api, Unreachable } from "./api.ts";
import { auditVerify } from "./audit.ts";
import { type Command, text, UsageError, type Values } from "./command.ts";
import { deadErrors, deadList, deadShow } from "./dead.ts";
import { eraseUser } from "./erase_user.ts";
import { operations } from "./operations.ts";
import { reconcile, unreceived } from "./reconcile.ts";
import { replay } from "./replay.ts";
import { deadSendBack } from "./send_back.ts";
import { readSettings } from "./settings.ts";
import { status } from "./status.ts";
import { timeline } from "./timeline.ts";
import { deliveries, outbox } from "./waiting.ts";

const commands: Record<string, Command> = {
  "status": status,
  "timeline": timeline,
  "dead list": deadList,
  "dead errors": deadErrors,
  "dead show": deadShow,
  "dead send-back": deadSendBack,
  "outbox": outbox,
  "deliveries": deliveries,
  "reconcile": reconcile,
  "unreceived": unreceived,
  "replay": replay,
  "audit verify": auditVerify,
  "erase-user": eraseUser,
  "operations": operations,
};

const usage = `deno task ops COMMAND [options]

${Object.values(commands).map(({ usage, summary }) => `  ${usage}\n      ${summary}`).join("\n")}

Options of all commands:
  --json               print the whole answer as JSON, for scripts
  --help               explain the command
  --entitlement URL    address of entitlement; default: from ENTITLEMENT_HTTP_HOST and _PORT
  --notification URL   address of notification; default: from NOTIFICATION_HTTP_HOST and _PORT
  --token TOKEN        credential, if the services require one. Prefer KENRI_TOKEN: other users of
                       this machine can read arguments

Start with \`status\`. Commands that change something have --dry-run, and each change is recorded.
Exit codes: 0 no problem, 1 a problem was found, 2 wrong arguments, 3 a service did not answer or
refused.`;

const commonOptions = {
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
  entitlement: { type: "string" },
  notification: { type: "string" },
  token: { type: "string" },
} as const;

Deno.exit(await main(Deno.args));

async function main(args: string[]): Promise<number> {
  try {
    return await run(args);
  } catch (error) {
    if (error instanceof UsageError || error instanceof SettingsError) {
      printProblem(`${error.message}\nSee \`deno task ops --help\`.`);
      return 2;
    }
    const reason = error instanceof Error ? error.message : `${error}`;
    // Answers are not checked, so one of another shape may fail anywhere.
    const isExpected = error instanceof Unreachable;
    printProblem(isExpected ? reason : `A service gave an answer that ops can't read: ${reason}`);
    return 3;
  }
}

async function run(args: string[]): Promise<number> {
  const found = commandIn(args);
  if (!found) {
    if (args.length > 0 && !args.includes("--help")) {
      const end = args.findIndex((word) => word.startsWith("-"));
      const words = args.slice(0, end < 0 ? undefined : end).join(" ");
      throw new UsageError(`There is no command "${words}"`);
    }
    print(usage);
    return args.length > 0 ? 0 : 2;
  }
  const [name, command] = found;
  const { values, positionals } = parse(args.slice(name.split(" ").length), command);
  if (values["help"]) {
    print(`deno task ops ${command.usage}\n\n  ${command.summary}\n${command.help}`);
    return 0;
  }
  const { urls, token, user } = readSettings();
  const api = new Api({
    entitlement: text(values["entitlement"]) ?? urls.entitlement,
    notification: text(values["notification"]) ?? urls.notification,
  }, text(values["token"]) ?? token);
  const result = await command.run({ api, user, values, positionals });
  if (values["json"]) printJson(result.json);
  else print(result.text);
  return result.problem ? 1 : 0;
}

/** A command is one word or two. */
function commandIn(args: string[]): [string, Command] | undefined {
  for (const name of [args.slice(0, 2).join(" "), args[0] ?? ""]) {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command) return [name, command];
  }
  return undefined;
}

function parse(args: string[], command: Command): { values: Values; positionals: string[] } {
  try {
    const options = { ...commonOptions, ...command.options };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const tooMany = positionals[command.words];
    if (tooMany !== undefined) throw new Error(`Unexpected argument "${tooMany}"`);
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
