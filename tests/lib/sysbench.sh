# What the two sysbench scripts share. Sourced after common.sh and proxy.sh.
# shellcheck shell=bash disable=SC2034,SC2153

# An account of its own, so that its connections can be told apart on a server that others use too.
BENCH_USER=bench BENCH_PASSWORD=bench-secret
PROXY_USERS="[{name=\"$BENCH_USER\",password=\"$BENCH_PASSWORD\"}]"
TABLES=4 ROWS=10000

as_root() { mariadb --no-defaults -u root -S "$1" -NB "${@:2}"; }

# use_server mariadb|mysql: sets SERVER_NAME, BACKEND and SOCKET; false when there is no such server.
use_server() {
  case $1 in
    mariadb) SERVER_NAME=MariaDB BACKEND=${MYRIAD_TEST_MARIADB-} SOCKET=${MYRIAD_TEST_MARIADB_SOCKET-};;
    mysql) SERVER_NAME=MySQL BACKEND=${MYRIAD_TEST_MYSQL-} SOCKET=${MYRIAD_TEST_MYSQL_SOCKET-};;
    *) die "no such server: $1";;
  esac
  [ -n "$BACKEND" ]
}

# run_sysbench PORT WORKLOAD text|prepared ACTION [OPTION..]
run_sysbench() {
  local port=$1 workload=$2 protocol=$3 action=$4 mode=auto
  shift 4
  [ "$protocol" = prepared ] || mode=disable
  ulimit -n "$(ulimit -Hn)"
  sysbench "$workload" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=$BENCH_USER \
    --mysql-password=$BENCH_PASSWORD --mysql-db=sbtest --tables=$TABLES --table-size=$ROWS --db-ps-mode=$mode \
    --report-interval=0 "$@" "$action"
}

# The account and the tables; tables of the right size are kept.
prepare_tables() {
  as_root "$SOCKET" -e "CREATE USER IF NOT EXISTS $BENCH_USER@'%' IDENTIFIED BY '$BENCH_PASSWORD'; GRANT ALL ON sbtest.* TO $BENCH_USER@'%'"
  if [ "$(as_root "$SOCKET" -e "SELECT COUNT(*) FROM sbtest.sbtest$TABLES" 2> /dev/null)" != $ROWS ]; then
    run_sysbench "${BACKEND#*:}" oltp_read_write text cleanup > /dev/null 2>&1 || true
    run_sysbench "${BACKEND#*:}" oltp_read_write text prepare > "$WORK/prepare.log" 2>&1 || { tail "$WORK/prepare.log" >&2; return 1; }
  fi
  # the first login without TLS after a start sends the password by RSA; a thousand of those at once only take time
  run_sysbench "${BACKEND#*:}" oltp_point_select text run --threads=1 --events=1 > /dev/null
}

# figure LOG NAME: the number that follows NAME in sysbench's report.
figure() { awk -v name="$2" 'at = index($0, name) {print substr($0, at + length(name)) + 0; exit}' "$1"; }
median() { sort -g | awk '{v[NR] = $1} END {if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
