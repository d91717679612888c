// docs/new-service.md, which quotes files of the small service whole. To write the quotes again:
// deno run --allow-all tests/reminders/page.ts
import { root } from "../../tools/root.ts";

export const page = `${root}docs/new-service.md`;

const quote = /(?<=^```(?:ts|sql) tests\/reminders\/([\w/.]+)\n)[^]*?(?=^```$)/gm;

export async function withQuotes(text: string): Promise<string> {
  const files = [...text.matchAll(quote)].map(([, file = ""]) => file);
  const quoted = await Promise.all(
    files.map((file) => Deno.readTextFile(`${root}tests/reminders/${file}`)),
  );
  return text.replaceAll(quote, () => quoted.shift() ?? "");
}

if (import.meta.main) {
  await Deno.writeTextFile(page, await withQuotes(await Deno.readTextFile(page)));
}
