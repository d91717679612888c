type Rule = Deno.lint.Rule;
type Node = Deno.lint.Node;

const hint =
  'A url is percent-encoded and a path is not, so a folder such as "my projects" is not ' +
  "found: use fileURLToPath and pathToFileURL of node:url, or hand over the URL itself";

/**
 * Paths are made of file urls by the functions that are there for it, and file urls of paths. What has
 * a `pathname` is taken for a file url unless it is seen to be an address: a `new URL` of one argument
 * that is not the module's own url.
 */
export const fileUrls: Rule = {
  create(context) {
    const values: Values = new Map();
    const reads: { of: Node; at: Node }[] = [];
    const report = (node: Node, message: string) => context.report({ node, message, hint });
    const declare = (name: Node, value: Node | null) => {
      if (name.type !== "Identifier") return;
      values.set(name.name, [...values.get(name.name) ?? [], value]);
    };
    const declareAll = ({ params }: { params: Deno.lint.Parameter[] }) => {
      for (const parameter of params) declare(parameter as Node, null);
    };
    return {
      FunctionDeclaration: declareAll,
      FunctionExpression: declareAll,
      ArrowFunctionExpression: declareAll,
      VariableDeclarator(node) {
        declare(node.id, node.init);
        if (node.id.type !== "ObjectPattern" || !node.init) return;
        for (const property of node.id.properties) {
          if (property.type !== "Property" || nameOf(property.key) !== "pathname") continue;
          reads.push({ of: node.init, at: property });
        }
      },
      MemberExpression(node) {
        if (isModuleUrl(node.object)) report(node, "The text of the module's url is taken apart");
        if (nameOf(node.property) !== "pathname" || isWritten(node)) return;
        reads.push({ of: node.object, at: node });
      },
      TemplateLiteral(node) {
        if (node.expressions.length > 0 && isFileUrl(node.quasis[0]?.cooked)) {
          report(node, "A file url is put together from texts");
        }
      },
      BinaryExpression(node) {
        const { operator, left } = node;
        if (operator === "+" && left.type === "Literal" && isFileUrl(left.value)) {
          report(node, "A file url is put together from texts");
        }
      },
      "Program:exit"() {
        for (const { of, at } of reads) {
          if (!isAddress(of, values)) report(at, "The `pathname` of a url is not a path");
        }
      },
    };
  },
};

/** What the names of the file stand for; null where that can't be seen. */
type Values = Map<string, (Node | null)[]>;

function isAddress(node: Node, values: Values): boolean {
  if (node.type === "Identifier") {
    const all = values.get(node.name) ?? [];
    return all.length > 0 && all.every((value) => value !== null && isAddress(value, values));
  }
  if (node.type === "ConditionalExpression") {
    return [node.consequent, node.alternate]
      .every((branch) => nameOf(branch) === "undefined" || isAddress(branch, values));
  }
  return node.type === "NewExpression" && nameOf(node.callee) === "URL" &&
    node.arguments.length === 1 && !!node.arguments[0] && !isOfModule(node.arguments[0]);
}

function isFileUrl(text: unknown): boolean {
  return typeof text === "string" && text.startsWith("file:");
}

/** `import.meta.url` */
function isModuleUrl(node: Node): boolean {
  return node.type === "MemberExpression" && node.object.type === "MetaProperty" &&
    nameOf(node.property) === "url";
}

function isWritten(node: Node): boolean {
  const { parent } = node as Node & { parent: Node };
  return parent.type === "AssignmentExpression" && parent.left === node && parent.operator === "=";
}

/** `import.meta.url`, `import.meta.resolve(…)` */
function isOfModule(node: Node): boolean {
  if (node.type === "CallExpression") return isOfModule(node.callee);
  if (node.type !== "MemberExpression") return false;
  return node.object.type === "MetaProperty" || isOfModule(node.object);
}

function nameOf(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}
