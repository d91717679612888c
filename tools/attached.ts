// Loaded before a service that something else runs in the foreground: the service must not outlive
// it. Whoever can still do so stops the service with a signal; this is for when it was killed.
const starter = Deno.ppid;
const watch = setInterval(() => {
  if (Deno.ppid !== starter) Deno.exit(1);
}, 500);
Deno.unrefTimer(watch);
