// The rules of the house that a linter can hold. `deno lint` loads this by deno.json.
import { fileUrls } from "./file_urls.ts";
import { membersApart, noBarrels, toolsWithoutTests, workspaceImports } from "./imports.ts";
import { environmentInConfig, onlyLogPrints } from "./privileges.ts";
import { fileSize, functionSize } from "./size.ts";
import { sqlParameters } from "./sql.ts";

const plugin: Deno.lint.Plugin = {
  name: "kenri",
  rules: {
    "members-apart": membersApart,
    "workspace-imports": workspaceImports,
    "tools-without-tests": toolsWithoutTests,
    "no-barrels": noBarrels,
    "environment-in-config": environmentInConfig,
    "only-log-prints": onlyLogPrints,
    "sql-parameters": sqlParameters,
    "file-urls": fileUrls,
    "file-size": fileSize,
    "function-size": functionSize,
  },
};

export default plugin;
