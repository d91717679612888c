type Node = Deno.lint.Node;

/** Every way in which a file names another module, types included. */
export function onImport(
  visit: (specifier: string, node: Node) => void,
): Deno.lint.LintVisitor {
  return {
    ImportDeclaration: (node) => visit(node.source.value, node.source),
    ExportAllDeclaration: (node) => visit(node.source.value, node.source),
    ExportNamedDeclaration(node) {
      if (node.source) visit(node.source.value, node.source);
    },
    ImportExpression(node) {
      const specifier = textOf(node.source);
      if (specifier !== undefined) visit(specifier, node.source);
    },
    TSImportType(node) {
      if (node.argument.type !== "TSLiteralType") return;
      const specifier = textOf(node.argument.literal);
      if (specifier !== undefined) visit(specifier, node.argument);
    },
  };
}

/** Every `Deno.env`, `console.log` and the like, as "Deno.env", also when it is destructured. */
export function onGlobal(visit: (name: string, node: Node) => void): Deno.lint.LintVisitor {
  return {
    MemberExpression(node) {
      const owner = globalOf(node.object);
      if (owner !== undefined) visit(`${owner}.${keyOf(node.property) ?? "*"}`, node);
    },
    VariableDeclarator(node) {
      const owner = node.init ? globalOf(node.init) : undefined;
      if (owner === undefined || node.id.type !== "ObjectPattern") return;
      for (const property of node.id.properties) {
        const key = property.type === "Property" ? keyOf(property.key) : "*";
        visit(`${owner}.${key ?? "*"}`, property);
      }
    },
  };
}

function globalOf(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression" || node.object.type !== "Identifier") return undefined;
  return node.object.name === "globalThis" ? keyOf(node.property) : undefined;
}

function keyOf(node: Node): string | undefined {
  return node.type === "Identifier" ? node.name : textOf(node);
}

function textOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral" && node.expressions.length === 0) {
    return node.quasis[0]?.cooked;
  }
  return undefined;
}
