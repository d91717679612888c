import { basename } from "node:path";
import { output } from "./output.ts";

/** The script in such a folder that starts the program. */
export const START = "start";

/**
 * Copies the program, its libraries and their loader from the unpacked packages into a new folder, with
 * a script that starts it. The loader is the program that the kernel runs, so the machine's own
 * C library may be older. `exec` keeps the process id.
 */
export async function gatherProgram(
  unpacked: string,
  program: string,
  folder: string,
): Promise<string> {
  const triplet = `${Deno.build.arch}-linux-gnu`;
  const libraries = [`usr/lib/${triplet}`, `lib/${triplet}`];
  const loader = await findLoader(libraries.map((library) => `${unpacked}/${library}`));
  // Relative, because the loader splits this list at every colon and semicolon.
  const list = ["--library-path", libraries.join(":"), "--list", program];
  const listed = await output(loader, list, unpacked);
  const needed = [...listed.matchAll(/ => ([^/].*) \(0x/g)].map(([, path]) =>
    `${unpacked}/${path}`
  );
  await Deno.mkdir(folder);
  for (const file of [loader, `${unpacked}/${program}`, ...needed]) {
    await Deno.copyFile(file, `${folder}/${basename(file)}`); // the file, where it is a link
  }
  // The loader itself puts the folder in the place of $ORIGIN, whatever the folder is called.
  const script = `#!/bin/sh
folder=\${0%/*}
exec "$folder/${basename(loader)}" --library-path '$ORIGIN' "$folder/${basename(program)}" "$@"
`;
  await Deno.writeTextFile(`${folder}/${START}`, script, { mode: 0o755 });
  return folder;
}

async function findLoader(libraries: string[]): Promise<string> {
  for (const folder of libraries) {
    const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name).catch(() => []);
    const loader = names.find((name) => /^ld-linux.*\.so\.\d+$/.test(name));
    if (loader) return `${folder}/${loader}`;
  }
  throw new Error("The packages contain no loader of libraries");
}
