// The client libraries report these problems only by a code. Deno's TLS does not distinguish
// between an expired certificate and an untrusted one.
const sentences: Record<string, string> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate has expired, or was signed by no authority that is trusted",
  SERVER_OPT_NA: "the server offers no TLS",
};

// What went wrong, in one line, for a log or a last_error column. PostgreSQL can store neither a
// NUL nor half a surrogate pair.
export function reasonOf(error: unknown): string {
  const text = sentences[codeOf(error)] ??
    (error instanceof Error ? error.message || error.name : String(error));
  // deno-lint-ignore no-control-regex
  return text.replaceAll(/[\u0000-\u001f]+/g, " ").slice(0, 1000).toWellFormed();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
