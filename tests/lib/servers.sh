# Private MariaDB and MySQL servers on free ports of 127.0.0.1, each with a data folder of its own below RUN: one of each
# that all tests share, and one apart for those that change what every session sees.
# Sourced by tests/run, which sets RUN (a temporary folder) and calls stop_servers on its way out.
# shellcheck shell=bash

SERVER_PIDS=()

# Options that both understand. Durability off, buffers small: the data lives for minutes.
COMMON_OPTIONS=(--bind-address=127.0.0.1 --skip-name-resolve --max-connections=2000 --back-log=1024
  --open-files-limit=16384 --table-open-cache=4000 --max-prepared-stmt-count=1000000
  --max-allowed-packet=256M --local-infile=1 --secure-file-priv= --character-set-server=utf8mb4
  --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=0
  --innodb-doublewrite=0 --max-connect-errors=1000000000)

# More options, of whoever starts a server for a measurement.
EXTRA_OPTIONS=()

# A throw-away authority and a certificate of it for 127.0.0.1, the same for both servers.
make_certificates() {
  local dir=$RUN/tls
  mkdir -p "$dir"
  {
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=Myriad test authority' \
      -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
      -keyout "$dir/ca-key.pem" -out "$dir/ca.pem"
    openssl req -newkey rsa:2048 -nodes -subj '/CN=localhost' -keyout "$dir/server-key.pem" -out "$dir/server.csr"
    printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'extendedKeyUsage=serverAuth' \
      'subjectAltName=DNS:localhost,IP:127.0.0.1' > "$dir/server.ext"
    openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca-key.pem" -CAcreateserial -days 30 \
      -extfile "$dir/server.ext" -out "$dir/server.pem"
  } 2> "$dir/openssl.log" || { cat "$dir/openssl.log" >&2; return 1; }
  chown -R mysql:mysql "$dir"
  export MYRIAD_TEST_CA=$dir/ca.pem
}

# Both servers run as the user `mysql`, and end with this shell even if it is killed outright (--pdeathsig).
as_mysql() { printf '%s\n' setpriv "--reuid=$(id -u mysql)" "--regid=$(id -g mysql)" --clear-groups --pdeathsig=TERM --; }

# start_server KIND FOLDER: starts `run_KIND FOLDER PORT` until it answers, on another port when that one was taken
# meanwhile. Leaves the port in START_PORT.
start_server() {
  local kind=$1 name=$2 log=$RUN/$2/server.log pid
  for _ in 1 2 3; do
    START_PORT=$(free_port)
    "run_$kind" "$name" "$START_PORT" > "$log" 2>&1 < /dev/null &
    pid=$!
    SERVER_PIDS+=("$pid")
    if wait_until 90 server_settled "$pid" "$RUN/$name/server.sock" && alive "$pid" && ! gone "$pid"; then
      return 0
    fi
    stop_pid "$pid"
  done
  say "$name did not start; the end of its log:"
  tail -n 20 "$log" >&2
  return 1
}
server_settled() { gone "$1" || mariadb --no-defaults -S "$2" -u root -e 'SELECT 1' > /dev/null 2>&1; }

# start_mariadb FOLDER, start_mysql FOLDER: makes the data folder and starts the server on it.
start_mariadb() {
  local dir=$RUN/$1
  install -d -o mysql -g mysql -m 750 "$dir"
  mariadb-install-db --no-defaults --datadir="$dir/data" --user=mysql --auth-root-authentication-method=normal \
    --skip-test-db --force > "$dir/install.log" 2>&1 || { tail -n 20 "$dir/install.log" >&2; return 1; }
  start_server mariadb "$1" || return 1
  create_accounts "$dir/server.sock" ''
}
run_mariadb() {
  local dir=$RUN/$1 privileges
  mapfile -t privileges < <(as_mysql)
  exec "${privileges[@]}" mariadbd --no-defaults --datadir="$dir/data" --socket="$dir/server.sock" --port="$2" \
    --pid-file="$dir/server.pid" "${COMMON_OPTIONS[@]}" "${EXTRA_OPTIONS[@]}" --skip-log-bin --innodb-log-file-size=64M \
    --ssl-ca="$RUN/tls/ca.pem" --ssl-cert="$RUN/tls/server.pem" --ssl-key="$RUN/tls/server-key.pem"
}

# MySQL sees $RUN as /mnt inside its tree.
start_mysql() {
  local dir=$RUN/$1
  install -d -o mysql -g mysql -m 750 "$dir"
  initialize_mysql "$1" > "$dir/install.log" 2>&1 || { tail -n 20 "$dir/install.log" >&2; return 1; }
  start_server mysql "$1" || return 1
  create_accounts "$dir/server.sock" 'WITH caching_sha2_password'
}
initialize_mysql() (
  mapfile -t privileges < <(as_mysql)
  in_sid "$RUN" "${privileges[@]}" mysqld --no-defaults --initialize-insecure --datadir="/mnt/$1/data" \
    --innodb-redo-log-capacity=64M
)
run_mysql() {
  local privileges
  mapfile -t privileges < <(as_mysql)
  in_sid "$RUN" "${privileges[@]}" mysqld --no-defaults --datadir="/mnt/$1/data" --socket="/mnt/$1/server.sock" \
    --port="$2" --pid-file="/mnt/$1/server.pid" "${COMMON_OPTIONS[@]}" "${EXTRA_OPTIONS[@]}" --mysqlx=OFF --skip-log-bin --sync-binlog=0 \
    --innodb-redo-log-capacity=64M \
    --ssl-ca=/mnt/tls/ca.pem --ssl-cert=/mnt/tls/server.pem --ssl-key=/mnt/tls/server-key.pem
}

# create_accounts SOCKET PLUGIN_CLAUSE
create_accounts() {
  local name
  {
    for name in test test2 sbtest; do
      echo "CREATE DATABASE IF NOT EXISTS $name CHARACTER SET utf8mb4;"
    done
    for name in app other nopass admin; do
      echo "CREATE USER '$name'@'%' IDENTIFIED $2 BY '$([ $name = nopass ] || echo $name-secret)';"
    done
    for name in app other nopass; do
      # as patterns: test, test2 .. test9 and so on; every schema tenant_..
      echo "GRANT ALL ON \`test%\`.* TO '$name'@'%'; GRANT ALL ON sbtest.* TO '$name'@'%'; GRANT ALL ON \`tenant\_%\`.* TO '$name'@'%';"
    done
    echo "GRANT ALL ON *.* TO 'admin'@'%' WITH GRANT OPTION;"
  } | mariadb --no-defaults -S "$1" -u root
}

start_servers() {
  id mysql > /dev/null 2>&1 || die "there is no user mysql (the package mariadb-server makes it)"
  chgrp mysql "$RUN"
  chmod 750 "$RUN"
  make_certificates
  say "starting MariaDB"
  start_mariadb mariadb || return 1
  export MYRIAD_TEST_MARIADB=127.0.0.1:$START_PORT MYRIAD_TEST_MARIADB_SOCKET=$RUN/mariadb/server.sock
  start_mariadb mariadb-apart || return 1
  export MYRIAD_TEST_MARIADB_APART=127.0.0.1:$START_PORT
  say "MariaDB $(server_version "$MYRIAD_TEST_MARIADB_SOCKET") on $MYRIAD_TEST_MARIADB, apart $MYRIAD_TEST_MARIADB_APART"
  if [ -e "$MYRIAD_TEST_SID/complete" ]; then
    say "starting MySQL"
    start_mysql mysql || return 1
    export MYRIAD_TEST_MYSQL=127.0.0.1:$START_PORT MYRIAD_TEST_MYSQL_SOCKET=$RUN/mysql/server.sock
    start_mysql mysql-apart || return 1
    export MYRIAD_TEST_MYSQL_APART=127.0.0.1:$START_PORT
    say "MySQL $(server_version "$MYRIAD_TEST_MYSQL_SOCKET") on $MYRIAD_TEST_MYSQL, apart $MYRIAD_TEST_MYSQL_APART"
  else
    loud "NO MySQL SERVER: its tree could not be made (see above). Everything is tested on MariaDB only."
  fi
}
server_version() { mariadb --no-defaults -S "$1" -u root -NBe 'SELECT VERSION()'; }

stop_servers() {
  local pid
  for pid in "${SERVER_PIDS[@]}"; do stop_pid "$pid" 30; done
  SERVER_PIDS=()
}

print_exports() {
  local name
  for name in MYRIAD_TEST_MARIADB MYRIAD_TEST_MARIADB_SOCKET MYRIAD_TEST_MARIADB_APART MYRIAD_TEST_MYSQL \
    MYRIAD_TEST_MYSQL_SOCKET MYRIAD_TEST_MYSQL_APART MYRIAD_TEST_CA MYRIAD_TEST_SID MYRIAD_TEST_SHARED \
    MYRIAD_TEST_PYTHON MYRIAD_TEST_NODE_PATH; do
    [ -z "${!name-}" ] || printf 'export %s=%q\n' "$name" "${!name}"
  done
}
