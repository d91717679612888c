type Rule = Deno.lint.Rule;
type Node = Deno.lint.Node;

const maxFileLines = 250;
const maxFunctionLines = 70;

/** A reader should be able to keep a whole file in mind. */
export const fileSize: Rule = {
  create(context) {
    return {
      Program() {
        const lines = context.sourceCode.text.trimEnd().split("\n").length;
        if (lines <= maxFileLines) return;
        context.report({
          range: [0, 0],
          message: `The file has ${lines} lines, ${maxFileLines} are allowed`,
          hint: "Split it where a second subject begins",
        });
      },
    };
  },
};

export const functionSize: Rule = {
  create(context) {
    const { text } = context.sourceCode;
    const check = (node: Node) => {
      const [start, end] = node.range;
      const lines = text.slice(start, end).split("\n").length;
      if (lines <= maxFunctionLines) return;
      context.report({
        range: [start, start + 1],
        message: `The function has ${lines} lines, ${maxFunctionLines} are allowed`,
        hint: "Move a step that has a name of its own into a function of its own",
      });
    };
    return {
      FunctionDeclaration: check,
      FunctionExpression: check,
      ArrowFunctionExpression: check,
    };
  },
};
