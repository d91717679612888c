// Reports the top-level folders in which files have changed, or "migrations" for an SQL file, until the
// signal. An editor writes a file in several steps, so the report waits until nothing has changed for a
// moment.
import * as services from "../../services.ts";

const folders = [...Object.keys(services), "shared", "proto"];
const quietMs = 200;

export async function onSourceChange(
  root: string,
  until: AbortSignal,
  onChange: (folders: Set<string>) => Promise<void>,
): Promise<void> {
  const watcher = Deno.watchFs(folders.map((folder) => `${root}${folder}`));
  until.addEventListener("abort", () => watcher.close(), { once: true });
  if (until.aborted) watcher.close();
  const changed = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let working = Promise.resolve();
  const flush = () => {
    const now = new Set(changed);
    changed.clear();
    working = working.then(() => onChange(now))
      .catch((error) => console.error(error instanceof Error ? error.message : error));
  };
  for await (const { kind, paths } of watcher) {
    if (kind === "access") continue;
    for (const path of paths) {
      const folder = path.slice(root.length).split("/")[0];
      if (path.endsWith(".sql")) changed.add("migrations");
      else if (folder && /\.(tsx?|js|css|proto)$/.test(path) && !path.endsWith("_test.ts")) {
        changed.add(folder);
      }
    }
    if (changed.size === 0) continue;
    clearTimeout(timer);
    timer = setTimeout(flush, quietMs);
  }
  clearTimeout(timer);
  await working;
}
