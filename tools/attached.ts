// Loaded before a service that something else runs in the foreground: the service must not outlive
// its starter, not even one that was killed and could pass no signal on.
const starter = Deno.ppid;
const watch = setInterval(() => {
  if (Deno.ppid === starter) return;
  clearInterval(watch);
  Deno.kill(Deno.pid, "SIGTERM"); // to itself, which needs no permission
}, 500);
Deno.unrefTimer(watch);
