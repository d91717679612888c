// deno task token: makes a token for a client. It is shown once; the settings contain only its digest.
import { scopes } from "../proto/scopes.ts";
import {
  clientPattern,
  digestOf,
  newToken,
  readScope,
  writeEntry,
} from "../shared/access/tokens.ts";

const usage = `deno task token NAME SCOPE…

NAME   of the client, 1 to 64 letters, digits or . _ -
SCOPE  one or more of ${scopes.join(", ")}`;

const [client = "", ...named] = Deno.args;
if (!clientPattern.test(client) || named.length === 0) fail(usage);

const token = newToken();
try {
  const granted = [...new Set(named.map((name) => readScope(name, "the token")))];
  const entry = writeEntry({ client, digest: digestOf(token), scopes: granted });
  console.log(`The token, for ${client} alone; it is not shown again:

  ${token}

Its entry in ACCESS_TOKENS, which has semicolons or new lines between entries:

  ${entry}`);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  fail(error.message);
}

function fail(message: string): never {
  console.error(message);
  Deno.exit(1);
}
