// deno task ops: see every event and mend what went wrong, over HTTP from both services.
import { parseArgs } from "node:util";
import { printableJson, printableLines } from "@kenri/shared/process/printable.ts";
import { devSettings } from "../tools/dev/settings.ts";
import { auditVerify } from "./audit.ts";
import { type Command, text, UsageError } from "./command.ts";
import { deadErrors, deadList, deadSendBack, deadShow } from "./dead.ts";
import { eraseUser } from "./erase_user.ts";
import { operations } from "./operations.ts";
import { reconcile, unreceived } from "./reconcile.ts";
import { replay } from "./replay.ts";
import { Service, Unreachable } from "./service.ts";
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
  --json               for scripts: the whole answer as JSON
  --help               what a command does, and how
  --entitlement URL    where the services are; else as their settings ENTITLEMENT_HTTP_HOST, _PORT
  --notification URL   and NOTIFICATION_HTTP_HOST, _PORT say
  --token TOKEN        the credential, where one is asked for; better in KENRI_TOKEN

Begin with \`status\`. What changes something takes --dry-run, and is recorded.
Exit codes: 0 all is well, 1 a problem was found, 2 called wrongly, 3 a service can't be asked.`;

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
    if (error instanceof UsageError) {
      console.error(printableLines(`${error.message}\nSee \`deno task ops --help\`.`));
      return 2;
    }
    if (error instanceof Unreachable) {
      console.error(printableLines(error.message));
      return 3;
    }
    throw error;
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
    console.log(usage);
    return args.length > 0 ? 0 : 2;
  }
  const [name, command] = found;
  const { values, positionals } = parse(args.slice(name.split(" ").length), command);
  if (values["help"]) {
    console.log(`deno task ops ${command.usage}\n\n  ${command.summary}\n${command.help}`);
    return 0;
  }
  const { problem, json, text } = await command.run({ ...services(values), values, positionals });
  // Answers contain what users wrote, and the service may be a false one.
  console.log(values["json"] ? printableJson(JSON.stringify(json, null, 2)) : printableLines(text));
  return problem ? 1 : 0;
}

/** A command is one word or two. */
function commandIn(args: string[]): [string, Command] | undefined {
  for (const name of [args.slice(0, 2).join(" "), args[0] ?? ""]) {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command) return [name, command];
  }
  return undefined;
}

type Values = Record<string, string | boolean | undefined>;

function parse(args: string[], command: Command): { values: Values; positionals: string[] } {
  try {
    const options = { ...commonOptions, ...command.options };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const tooMany = positionals[command.words];
    if (tooMany !== undefined) throw new Error(`"${tooMany}" is one word too many`);
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function services(values: Values): { entitlement: Service; notification: Service } {
  const settings = devSettings((name) => Deno.env.get(name), {});
  const token = text(values["token"]) ?? Deno.env.get("KENRI_TOKEN");
  const service = (name: "entitlement" | "notification") => {
    const upper = name.toUpperCase();
    const url = `http://${settings[`${upper}_HTTP_HOST`]}:${settings[`${upper}_HTTP_PORT`]}`;
    return new Service(name, text(values[name]) ?? url, token);
  };
  return { entitlement: service("entitlement"), notification: service("notification") };
}
