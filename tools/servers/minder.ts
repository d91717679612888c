/**
 * The minder: a small `sh` between the caller and one server program.
 *
 * The caller holds the other end of its stdin. However the caller ends, the kernel closes that
 * pipe, so the minder sees end of file even after `kill -9` and ends the server. It runs in a
 * session of its own: Ctrl-C in a terminal reaches the caller only, which can then finish its work
 * while its servers are still up.
 *
 * Arguments: run folder, working folder, signal at end of file, program, its arguments.
 * On stdout: the server's process id. On stdin: one signal name per line.
 */
export const MINDER = `
run=$1 work=$2 last_signal=$3 program=$4
shift 3
: >"$run/running"

(cd "$work" && exec "$@") </dev/null >>"$run/log" 2>&1 &
server=$!
echo "$server"

# A stopped process (SIGSTOP) would keep the signal pending: SIGCONT wakes it.
# 10 s is far more than a clean stop takes; after that nothing may be left, clean or not.
end_server() {
  kill -s "$1" "$server" 2>/dev/null
  kill -s CONT "$server" 2>/dev/null
  tries=0
  while kill -0 "$server" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -gt 500 ] && kill -s KILL "$server"
    sleep 0.02
  done
}

exec 3<&0
(
  while read -r signal; do end_server "$signal"; done
  end_server "$last_signal"
) <&3 >/dev/null 2>&1 &
listener=$!

wait "$server"
status=$?
kill "$listener" 2>/dev/null

# PostgreSQL's backends are in sessions of their own and outlive a killed postmaster for as long as
# they are busy. They share its program and working folder, which no other process does. (Without
# /proc, on macOS, they end on their own when they next look for the postmaster.)
kill_left() {
  cd /proc 2>/dev/null || return 1
  left=1
  for process in [0-9]*; do
    if [ "$process/cwd" -ef "$work" ] && [ "$process/exe" -ef "$program" ]; then
      kill -s KILL "$process" 2>/dev/null && left=0
    fi
  done
  return "$left"
}
tries=0
while kill_left && [ "$tries" -lt 250 ]; do
  tries=$((tries + 1))
  sleep 0.02
done

rm -f "$run/running"
exit "$status"
`;

/**
 * Removes the run folder when the caller closes the pipe or ends, after the minder in it is done.
 * The bound is longer than the minder's own.
 */
export const SWEEPER = `
read -r _
tries=0
while [ -e "$1/running" ] && [ "$tries" -lt 1000 ]; do
  tries=$((tries + 1))
  sleep 0.02
done
rm -rf "$1"
`;
