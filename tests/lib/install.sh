# What the tests need on a bare Debian 12 machine: packages, a Python venv, npm packages, a tree with MySQL.
# Sourced by tests/run. Idempotent; a lock keeps two runs from installing at the same time.
# shellcheck shell=bash disable=SC2016,SC2034

MYRIAD_TEST_SID=$MYRIAD_TEST_CACHE/sid
MYRIAD_TEST_PYTHON=$MYRIAD_TEST_CACHE/python/bin/python
MYRIAD_TEST_NODE_PATH=$MYRIAD_TEST_CACHE/node/node_modules
export MYRIAD_TEST_SID MYRIAD_TEST_PYTHON MYRIAD_TEST_NODE_PATH

SERVER_PACKAGES=(mariadb-server mariadb-client openssl iproute2 util-linux debootstrap curl ca-certificates)
CLIENT_PACKAGES=(python3 python3-venv python3-dev gcc libc6-dev pkg-config default-libmysqlclient-dev
  php-cli php-mysql golang-go golang-github-go-sql-driver-mysql-dev libmariadb-java)
BENCH_PACKAGES=(sysbench haproxy python3)

# Runs a command while holding the machine-wide or cache-wide lock. With a file descriptor of its own, so that a
# background process started later does not inherit the lock.
with_lock() {
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  ( flock -w 1800 9 || die "another run has held $file for half an hour"
    "$@" 9>&- ) 9> "$file"
}

# install_packages NAME..: installs those that are missing, without starting any service.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -Wf '${db:Status-Status}' "$name" 2> /dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die "packages are missing and only root can install them: ${missing[*]}"
  say "installing ${missing[*]}"
  with_lock /run/lock/myriad-tests-apt.lock apt_install "${missing[@]}"
}
apt_install() {
  local policy=/usr/sbin/policy-rc.d made='' status=0 log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  retry 4 apt-get update -qq || return 1
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' > $policy; chmod 755 $policy; made=1; }
  retry 4 apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "$@" > "$log" 2>&1 || status=1
  [ "$status" = 0 ] || tail -n 20 "$log" >&2
  [ -z "$made" ] || rm -f $policy
  rm -f "$log"
  return $status
}

install_java() { command -v javac > /dev/null || install_packages default-jdk-headless; }
install_node() { command -v npm > /dev/null || install_packages nodejs npm; }

# A marker file that names the contents makes a half-made or outdated venv start afresh.
install_python() {
  local home=$MYRIAD_TEST_CACHE/python
  local wanted='PyMySQL[rsa]==1.2.4 cryptography==50.0.2 mysql-connector-python==26.10.0 mysqlclient==2.3.2'
  [ "$(cat "$home/complete" 2> /dev/null)" != "$wanted" ] || return 0
  say "making the Python environment"
  rm -rf "$home"
  /usr/bin/python3 -m venv "$home"
  # shellcheck disable=SC2086  # the list is meant to be split
  retry 4 "$home/bin/pip" --quiet install $wanted
  echo "$wanted" > "$home/complete"
}

install_npm() {
  local home=$MYRIAD_TEST_CACHE/node wanted='mysql2@3.24.6'
  [ "$(cat "$home/complete" 2> /dev/null)" != "$wanted" ] || return 0
  say "installing the npm packages"
  rm -rf "$home"
  mkdir -p "$home"
  retry 4 npm --prefix "$home" --no-audit --no-fund --loglevel=error install "$wanted" > /dev/null
  echo "$wanted" > "$home/complete"
}

# MySQL: Debian 12 has none, Debian sid has, linked to a newer libc. So: a small tree of sid to chroot into. Mounts are
# made in a private mount namespace; none is ever left behind.
install_sid() {
  local mirror half=$MYRIAD_TEST_SID.half
  [ ! -e "$MYRIAD_TEST_SID/complete" ] || return 0
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 !~ /security/ {print $1; exit}')
  [ -n "$mirror" ] || { say "apt on this machine names no mirror"; return 1; }
  say "making the MySQL tree (about two minutes, once)"
  retry 3 make_sid_tree "$half" "$mirror" || return 1
  rm -rf "$MYRIAD_TEST_SID"
  mv "$half" "$MYRIAD_TEST_SID"
}
make_sid_tree() {
  local tree=$1 mirror=$2 log=$MYRIAD_TEST_CACHE/sid.log
  rm -rf "$tree"
  if ! unshare --mount bash -euo pipefail -s "$tree" "$mirror" > "$log" 2>&1 << 'INSIDE'
    tree=$1 mirror=$2
    export DEBIAN_FRONTEND=noninteractive
    debootstrap --variant=minbase --merged-usr sid "$tree" "$mirror"
    for m in proc sys dev; do mountpoint -q "$tree/$m" || mount --bind "/$m" "$tree/$m"; done
    printf '#!/bin/sh\nexit 101\n' > "$tree/usr/sbin/policy-rc.d"
    chmod 755 "$tree/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$tree/etc/resolv.conf"
    echo "deb $mirror sid main" > "$tree/etc/apt/sources.list"
    # the list of a mirror may be past its Valid-Until: accept its age, never a missing signature
    chroot "$tree" apt-get -o Acquire::Check-Valid-Until=false update -q
    chroot "$tree" apt-get install -y -q --no-install-recommends mysql-server-core mysql-client-core openssl
    rm -rf "$tree"/var/lib/apt/lists/* "$tree"/etc/apt/sources.list
    chroot "$tree" apt-get clean
    echo '127.0.0.1 localhost' > "$tree/etc/hosts"
    touch "$tree/complete"
INSIDE
  then
    say "the MySQL tree could not be made; the end of $log:"
    tail -n 15 "$log" >&2
    return 1
  fi
}

# in_sid SHARED COMMAND..: runs a command inside the tree, with the folder SHARED at /mnt. Replaces the calling shell.
in_sid() {
  exec unshare --mount bash -euc '
    tree=$1 shared=$2; shift 2
    for m in proc sys dev; do mount --bind "/$m" "$tree/$m"; done
    mount --bind "$shared" "$tree/mnt"
    exec chroot "$tree" "$@"' in_sid "$MYRIAD_TEST_SID" "$@"
}
