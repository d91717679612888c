import { memberFile } from "./layout.ts";

type Rule = Deno.lint.Rule;

// Comments, then the head of a statement. Words such as "select" alone also begin sentences.
const statement =
  /^(\s|--.*\n)*(with\s+(recursive\s+)?\w+\s+(\(.*?\)\s+)?as\b|select\b.*\bfrom\b|insert\s+into\b|update\s.*\bset\b|delete\s+from\b)/is;

// A hole where only a value can stand. Column lists, conditions and lists of placeholders
// are allowed: they can't be parameters, and a rule with false alarms gets switched off.
const valueFollows = /([=<>']|\b(limit|offset|interval|like))\s*$/i;

/** Templates with a tag are allowed, because the tag may turn its holes into parameters. */
export const sqlParameters: Rule = {
  create(context) {
    if (!memberFile(context.filename)) return {};
    return {
      TemplateLiteral(node) {
        if (node.parent.type === "TaggedTemplateExpression") return;
        if (!statement.test(node.quasis.map((quasi) => quasi.cooked).join("?"))) return;
        node.expressions.forEach((expression, i) => {
          if (!valueFollows.test(node.quasis[i]?.cooked ?? "")) return;
          context.report({
            node: expression,
            message: "A value is written into the text of a statement",
            hint: "Write $1, $2 and so on, and pass the value as a parameter",
          });
        });
      },
    };
  },
};
