type Rule = Deno.lint.Rule;
type Node = Deno.lint.Node;

const hint =
  'A url is percent-encoded and a path is not, so a folder such as "my projects" is not ' +
  "found: use fileURLToPath and pathToFileURL of node:url, or hand over the URL itself";

/**
 * Paths and file urls must be converted by the functions of node:url. An object with a `pathname`
 * counts as a file url unless the code shows that it is an address: a `new URL` of one argument that is
 * not the module's own url.
 */
export const fileUrls: Rule = {
  create(context) {
    const report = (node: Node, message: string) => context.report({ node, message, hint });
    const read = (url: Node, at: Node) => {
      if (!isAddress(url)) report(at, "The `pathname` of a url is not a path");
    };
    return {
      MemberExpression(node) {
        if (isModuleUrl(node.object)) report(node, "The text of the module's url is taken apart");
        if (nameOf(node.property) === "pathname" && !isWritten(node)) read(node.object, node);
      },
      VariableDeclarator({ id, init }) {
        if (id.type !== "ObjectPattern" || !init) return;
        for (const property of id.properties) {
          if (property.type !== "Property" || nameOf(property.key) !== "pathname") continue;
          read(init, property);
        }
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
    };
  },
};

function isAddress(node: Node): boolean {
  if (node.type === "Identifier") {
    const value = valueOf(node);
    return value !== undefined && isAddress(value);
  }
  if (node.type === "ConditionalExpression") {
    return [node.consequent, node.alternate]
      .every((branch) => nameOf(branch) === "undefined" || isAddress(branch));
  }
  return node.type === "NewExpression" && nameOf(node.callee) === "URL" &&
    node.arguments.length === 1 && !!node.arguments[0] && !isOfModule(node.arguments[0]);
}

/** The value with which a name is declared in the nearest scope, if this file shows it. */
function valueOf(name: Deno.lint.Identifier): Node | undefined {
  for (let scope = parentOf(name); scope; scope = parentOf(scope)) {
    if ("params" in scope && Array.isArray(scope.params)) {
      if (scope.params.some((parameter) => nameOf(parameter as Node) === name.name)) {
        return undefined;
      }
    }
    if (scope.type !== "BlockStatement" && scope.type !== "Program") continue;
    for (const statement of scope.body) {
      const declaration = statement.type === "ExportNamedDeclaration"
        ? statement.declaration
        : statement;
      if (declaration?.type !== "VariableDeclaration") continue;
      const found = declaration.declarations.find(({ id }) => nameOf(id) === name.name);
      if (found) return found.init ?? undefined;
    }
  }
  return undefined;
}

function parentOf(node: Node): Node | undefined {
  return "parent" in node ? node.parent as Node : undefined;
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
  const parent = parentOf(node);
  return parent?.type === "AssignmentExpression" && parent.left === node && parent.operator === "=";
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
