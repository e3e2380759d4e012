# Starts one proxy in front of a server, reads its metrics, drains it. Sourced by the client and sysbench drivers.
# shellcheck shell=bash

MYRIAD_BIN=${MYRIAD_BIN:-${CARGO_TARGET_DIR:-$MYRIAD_REPO/target}/release/myriad}
PROXY_PID='' PROXY_PORT='' PROXY_METRICS='' PROXY_LOG=''

# The users that the servers have (see create_accounts in servers.sh), for `auth.mode = "users"`.
PROXY_USERS='[{name="app",password="app-secret"},{name="other",password="other-secret"},{name="nopass",password=""}]'

# start_proxy LOG BACKEND MODE POOL [OPTION..]: waits until it listens. It ends with this shell, even if that is killed.
start_proxy() {
  local backend=$2 mode=$3 pool=$4 users=()
  PROXY_LOG=$1
  shift 4
  [ -x "$MYRIAD_BIN" ] || die "there is no $MYRIAD_BIN: cargo build --release, or set MYRIAD_BIN"
  [ "$mode" != users ] || users=(--set "auth.users=$PROXY_USERS")
  PROXY_PORT=$(free_port)
  PROXY_METRICS=$(free_port)
  setpriv --pdeathsig=TERM -- "$MYRIAD_BIN" serve --listen "127.0.0.1:$PROXY_PORT" --backend "$backend" \
    --set "pool.max_connections=$pool" --set "auth.mode=\"$mode\"" "${users[@]}" \
    --set "metrics.listen=\"127.0.0.1:$PROXY_METRICS\"" "$@" < /dev/null > "$PROXY_LOG" 2>&1 &
  PROXY_PID=$!
  if ! wait_until 20 proxy_settled || gone "$PROXY_PID"; then
    say "the proxy did not start; the end of its log:"
    tail -n 20 "$PROXY_LOG" >&2
    kill_proxy
    return 1
  fi
}
proxy_settled() { gone "$PROXY_PID" || port_answers "$PROXY_PORT"; }

# A proxy that is told to stop finishes what is under way and exits 0.
drain_proxy() {
  local pid=$PROXY_PID status=0
  PROXY_PID=''
  [ -n "$pid" ] || return 0
  kill -TERM "$pid" 2> /dev/null || { say "the proxy had ended before it was told to"; tail -n 20 "$PROXY_LOG" >&2; return 1; }
  wait_until 40 gone "$pid" || { say "the proxy ignored TERM"; kill -KILL "$pid" || true; }
  wait "$pid" || status=$?
  [ "$status" = 0 ] || { say "the proxy exited $status; the end of its log:"; tail -n 20 "$PROXY_LOG" >&2; return 1; }
}
kill_proxy() {
  [ -z "$PROXY_PID" ] || stop_pid "$PROXY_PID" 5
  PROXY_PID=''
}

# metric NAME: the sum of all samples whose name, or name and labels, begin so: `metric 'myriad_clients{'`.
metric() {
  curl -sf --max-time 5 "http://127.0.0.1:$PROXY_METRICS/metrics" \
    | awk -v name="$1" 'index($1, name) == 1 {sum += $NF; seen = 1} END {if (!seen) exit 1; print sum}'
}

# After the last client has gone nothing may be left over: no client, no lease, nobody in line.
nothing_left() {
  [ "$(metric 'myriad_clients{')" = 0 ] && [ "$(metric 'myriad_backend_connections{state="leased"}')" = 0 ] \
    && [ "$(metric myriad_pool_waiting)" = 0 ]
}
expect_nothing_left() {
  wait_until 10 nothing_left && return
  say "10 s after the last client left, the proxy still counts:"
  curl -s --max-time 5 "http://127.0.0.1:$PROXY_METRICS/metrics" \
    | grep -E '^myriad_(clients|backend_connections|pool_waiting|pinned_clients)' >&2 || true
  return 1
}
