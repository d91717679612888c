// Loaded before a service that another process runs in the foreground: the service must end with that
// process, even if it is killed and can't pass on a signal.
const starter = Deno.ppid;
const watch = setInterval(() => {
  if (Deno.ppid === starter) return;
  clearInterval(watch);
  Deno.kill(Deno.pid, "SIGTERM"); // to itself, which needs no permission
}, 500);
Deno.unrefTimer(watch);
