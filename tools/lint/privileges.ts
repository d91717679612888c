import { memberFile } from "./layout.ts";
import { onGlobal, onImport } from "./visit.ts";

type Rule = Deno.lint.Rule;

export const environmentInConfig: Rule = {
  create(context) {
    const file = memberFile(context.filename);
    if (!file || file.path === "shared/process/settings.ts") return {};
    const report = (node: Deno.lint.Node) =>
      context.report({
        node,
        message: "Only shared/process/settings.ts reads the environment",
        hint: "Add a key to the schema in config.ts and pass the setting as an argument",
      });
    return {
      ...onGlobal((name, node) => {
        if (name === "Deno.env" || name === "process.env") report(node);
      }),
      // The module is refused as a whole: Deno has its own names for signals, exit and the rest.
      ...onImport((specifier, node) => {
        if (specifier === "node:process" || specifier === "process") report(node);
      }),
    };
  },
};

const prints = /^(console\..*|(Deno|process)\.(stdout|stderr))$/;

// A service prints its log; a command for operators (ops, recover, redeliver) prints for people.
const printers = ["shared/process/log.ts", "shared/process/terminal.ts"];

export const onlyLogPrints: Rule = {
  create(context) {
    const file = memberFile(context.filename);
    if (!file || printers.includes(file.path)) return {};
    return onGlobal((name, node) => {
      if (!prints.test(name)) return;
      context.report({
        node,
        message: `Only ${printers.join(" and ")} print, not \`${name}\``,
        hint:
          'Log it with a logger of "@kenri/shared/process/log.ts"; in a command for operators, ' +
          'print it with "@kenri/shared/process/terminal.ts"',
      });
    });
  },
};
