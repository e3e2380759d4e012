# Shared helpers of the test scripts. Sourced, never run. Everything here is for bash with `set -euo pipefail`.
# shellcheck shell=bash

MYRIAD_REPO=${MYRIAD_REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
MYRIAD_TEST_CACHE=${MYRIAD_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/myriad-tests}
export MYRIAD_REPO MYRIAD_TEST_CACHE

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
loud() { printf '\n%s  *** %s ***\n\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# retry N COMMAND..: for what depends on a network; waits 3, 6, 9 .. seconds between attempts.
retry() {
  local attempts=$1 attempt=1
  shift
  until "$@"; do
    [ "$attempt" -lt "$attempts" ] || return 1
    say "attempt $attempt of $attempts failed: $1; trying again"
    sleep $((attempt * 3))
    attempt=$((attempt + 1))
  done
}

# wait_until SECONDS COMMAND..: polls until the command succeeds.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

port_answers() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
alive() { kill -0 "$1" 2> /dev/null; }

# A free TCP port of 127.0.0.1, chosen at random *below* the range that the kernel takes source ports from, so that
# tests with thousands of outgoing connections cannot sit on it.
free_port() {
  local port _
  for _ in $(seq 200); do
    port=$((10240 + (RANDOM * 32768 + RANDOM) % 21000))
    if ! port_answers "$port" && ! ss -Htln "sport = :$port" | grep -q .; then
      echo "$port"
      return
    fi
  done
  die "no free port on 127.0.0.1"
}

# stop_pid PID [SECONDS]: TERM, then KILL when it is still there after SECONDS. Only for processes this shell started.
stop_pid() {
  local pid=$1
  alive "$pid" || return 0
  kill -TERM "$pid" 2> /dev/null || true
  wait_until "${2:-15}" gone "$pid" || { say "pid $pid ignored TERM: killing it"; kill -KILL "$pid" 2> /dev/null || true; }
  wait "$pid" 2> /dev/null || true
}
# A zombie still answers kill -0 until it is waited for, so look at its state.
gone() {
  local state
  state=$(awk '/^State:/ {print $2}' "/proc/$1/status" 2> /dev/null) || return 0
  [ -z "$state" ] || [ "$state" = Z ]
}
