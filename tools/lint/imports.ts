import { basename } from "node:path";
import { folderOf, folderOfImport, importedFolder, isRelative, memberFile } from "./layout.ts";
import { onImport } from "./visit.ts";

type Rule = Deno.lint.Rule;

export const membersApart: Rule = {
  create(context) {
    const file = memberFile(context.filename);
    if (!file) return {};
    return onImport((specifier, node) => {
      const target = importedFolder(specifier, file);
      if (target === undefined || target === file.member) return;
      if (file.mayImport.includes(target)) return;
      context.report({
        node,
        message: `"${file.member}" must not import from "${target}"`,
        hint: `It may import from: ${[file.member, ...file.mayImport].join(", ")}. ` +
          `Move the shared code there, or add the data to the event`,
      });
    });
  },
};

export const workspaceImports: Rule = {
  create(context) {
    const file = memberFile(context.filename);
    if (!file) return {};
    return onImport((specifier, node) => {
      const target = importedFolder(specifier, file);
      if (target === undefined || target === file.member || !isRelative(specifier)) return;
      // members-apart reports imports that are not allowed at all.
      if (!file.mayImport.includes(target)) return;
      context.report({
        node,
        message: `A relative path leads out of "${file.member}" into "${target}"`,
        hint: `Import it as "@kenri/${target}/<path>"`,
      });
    });
  },
};

/** Tests may import tools, so tools must not import tests. */
export const toolsWithoutTests: Rule = {
  create(context) {
    if (folderOf(context.filename) !== "tools") return {};
    return onImport((specifier, node) => {
      if (folderOfImport(specifier, context.filename) !== "tests") return;
      context.report({
        node,
        message: "A tool must not import from the tests",
        hint: "Move what both need to tools/, where tests may import it",
      });
    });
  },
};

const shapeless = /^(index|mod|utils?|helpers?|common|misc)\.[cm]?[jt]sx?$/;

export const noBarrels: Rule = {
  create(context) {
    const name = basename(context.filename);
    return {
      Program() {
        if (!shapeless.test(name)) return;
        context.report({
          range: [0, 0],
          message: `The name "${name}" does not say what the file is for`,
          hint: "Name it by its verb or its noun, and let callers import it directly",
        });
      },
      ExportAllDeclaration(node) {
        context.report({
          node,
          message: "`export *` hides where a name comes from",
          hint: "Let callers import from the file that declares the name",
        });
      },
    };
  },
};
