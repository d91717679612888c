// Runs with the permissions of a service, tries each given operation, and prints whether it is
// permitted.

type Attempt = [name: string, ...rest: string[]];

const attempts: Record<string, (...args: string[]) => unknown> = {
  connect: async (hostname, port) =>
    (await Deno.connect({ hostname: hostname as string, port: Number(port) })).close(),
  listen: (hostname, port) =>
    Deno.listen({ hostname: hostname as string, port: Number(port) }).close(),
  resolve: (name) => Deno.resolveDns(name as string, "A"),
  fetch: async (url) => await (await fetch(url as string)).body?.cancel(),
  readFile: (path) => Deno.readTextFile(path as string),
  readFolder: (path) => [...Deno.readDirSync(path as string)],
  writeFile: (path) => Deno.writeTextFile(path as string, ""),
  makeTempFile: () => Deno.makeTempFile(),
  remove: (path) => Deno.remove(path as string),
  unixSocket: (path) => Deno.connect({ transport: "unix", path: path as string }),
  getEnv: (name) => Deno.env.get(name as string),
  allEnv: () => Object.keys(Deno.env.toObject()).sort().join(),
  setEnv: (name) => Deno.env.set(name as string, "changed"),
  run: (program) => new Deno.Command(program as string).output(),
  ffi: (path) => Deno.dlopen(path as string, {}),
  kill: () => Deno.kill(Deno.ppid, "SIGCONT"),
  runFromNode: async (program) =>
    (await import("node:child_process")).execFileSync(program as string),
  libraryFromNode: async (path) =>
    (await import("node:process")).default.dlopen({ exports: {} }, path as string),
  readFromNode: async (path) => (await import("node:fs")).readFileSync(path as string),
  envFromNode: async (name) => (await import("node:process")).default.env[name as string],
  sqlite: async (path) => new (await import("node:sqlite")).DatabaseSync(path as string),
  heapSnapshot: async (path) => (await import("node:v8")).writeHeapSnapshot(path),
  inspector: async (port) => (await import("node:inspector")).open(Number(port), "127.0.0.1"),
  changeFolder: (path) => Deno.chdir(path as string),
  link: (path) => Deno.symlink("/etc/passwd", path as string),
  request: async (name) => {
    const { state } = await Deno.permissions.request({ name: name as "read" });
    throw Object.assign(new Error(), { name: state });
  },
  readFromWorker: (path) => inWorker(`Deno.readTextFileSync(${JSON.stringify(path)})`),
  import: (url) => import(url as string),
  hostname: () => Deno.hostname(),
  osRelease: () => Deno.osRelease(),
  loadavg: () => Deno.loadavg(),
  interfaces: () => Deno.networkInterfaces(),
  uid: () => Deno.uid(),
};

// A worker never has more permissions than the process that starts it.
function inWorker(code: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const program = `try { ${code}; postMessage("") } catch (error) { postMessage(error.name) }`;
  const url = `data:text/javascript,${encodeURIComponent(program)}`;
  const worker = new Worker(url, { type: "module" });
  worker.onmessage = ({ data }) => {
    worker.terminate();
    if (data === "") resolve();
    else reject(Object.assign(new Error(), { name: data }));
  };
  return promise;
}

const results: string[] = [];
for (const [name, ...args] of JSON.parse(Deno.args[0] ?? "[]") as Attempt[]) {
  try {
    const result = await attempts[name]?.(...args);
    results.push(name === "allEnv" ? String(result) : "allowed");
  } catch (error) {
    results.push(error instanceof Error ? error.name : String(error));
  }
}
console.log(JSON.stringify(results));
