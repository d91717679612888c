// Run with a service's permissions: tries what it is told to, and says of each whether it may.

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
  import: (url) => import(url as string),
  hostname: () => Deno.hostname(),
  osRelease: () => Deno.osRelease(),
  loadavg: () => Deno.loadavg(),
  interfaces: () => Deno.networkInterfaces(),
  uid: () => Deno.uid(),
};

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
