import type { CustomFetchOptions } from "openid-client";

// Requests to the issuer. Each has a connection of its own, because on a reused one that closes fetch
// sends a POST again, and an issuer that sees a code twice withdraws what it was good for.
const connections = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });

// Many times what any issuer answers.
const maxBytes = 1024 * 1024;

/** The whole answer, with its body. A redirect is an answer and is not followed. */
export async function fetchWithin(
  deadline: AbortSignal,
  url: string,
  { method, headers, body }: CustomFetchOptions,
): Promise<Response> {
  const answer = await fetch(url, {
    ...{ method, headers, body: body as BodyInit | null },
    client: connections,
    redirect: "manual",
    signal: deadline,
  });
  const { status } = answer;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new Error("the answer is too large"); // the loop cancels the rest
    chunks.push(chunk);
  }
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  return new Response(hasBody ? new Blob(chunks) : null, { status, headers: answer.headers });
}
