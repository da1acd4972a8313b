#!/usr/bin/env bash
# Installs the real clients and the two reference servers of the interoperability suite, each at its pinned version, below
# .interop at the top of the repository. What is already there and unchanged is kept. Anything that cannot be
# installed makes this script fail: the suite never runs with a client missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${ZABRA_INTEROP_CACHE:-$root/.interop}
mkdir -p "$cache/stamps" "$cache/bin"

# The upstream version that Debian 12 ships; the Debian revision behind it is a matter of security updates.
debian_zookeeper=3.8.0

say() { printf 'interop: %s\n' "$*"; }
die() { printf 'interop: FAIL: %s\n' "$*" >&2; exit 1; }

# fresh NAME FILE...: true when NAME was installed from exactly these files.
fresh() {
  local name=$1; shift
  [[ -f $cache/stamps/$name && $(cat "$cache/stamps/$name") == "$(cat "$@" "${BASH_SOURCE[0]}" | sha256sum)" ]]
}
stamp() {
  local name=$1; shift
  cat "$@" "${BASH_SOURCE[0]}" | sha256sum >"$cache/stamps/$name"
}

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is not on PATH"
  done
}

# The C client's library and the 3.8.0 server come from Debian, as an operator of Debian would get them.
install_debian() {
  local missing=() package version
  for package in libzookeeper-mt-dev libzookeeper-java libslf4j-java libssl-dev; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  if ((${#missing[@]})); then
    say "installing ${missing[*]}"
    apt-get update -qq >"$cache/apt.log" 2>&1 || { tail -20 "$cache/apt.log"; die "apt-get update failed"; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$cache/apt.log" 2>&1 ||
      { tail -20 "$cache/apt.log"; die "apt-get cannot install ${missing[*]} (root is needed for this step)"; }
  fi
  for package in libzookeeper-mt-dev libzookeeper-java; do
    version=$(dpkg-query -W -f '${Version}' "$package") || die "$package is not installed"
    [[ $version == "$debian_zookeeper"-* ]] || die "$package is $version, want $debian_zookeeper"
  done
}

install_java() {
  fresh java "$here/pom.xml" && return
  say "fetching the Java client, Curator and the 3.9.5 server"
  rm -rf "$cache/jars"
  mvn -q -B -Dstyle.color=never -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$cache/jars" ||
    die "Maven cannot fetch the Java dependencies"
  [[ -f $cache/jars/zookeeper-3.9.5.jar ]] || die "zookeeper-3.9.5.jar did not arrive"
  stamp java "$here/pom.xml"
}

build_java() {
  fresh classes "$here/pom.xml" "$here"/java/*.java && return
  say "compiling the Java programs"
  rm -rf "$cache/classes"
  javac -nowarn -XDsuppressNotes -encoding UTF-8 -cp "$cache/jars/*" -d "$cache/classes" "$here"/java/*.java || die "javac failed"
  stamp classes "$here/pom.xml" "$here"/java/*.java
}

install_python() {
  fresh python "$here/requirements.txt" && return
  say "fetching kazoo"
  rm -rf "$cache/venv"
  python3 -m venv "$cache/venv" || die "python3 -m venv failed"
  "$cache/venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$here/requirements.txt" ||
    die "pip cannot install kazoo"
  stamp python "$here/requirements.txt"
}

install_node() {
  fresh node "$here/node/package-lock.json" && return
  say "fetching node-zookeeper-client"
  rm -rf "$cache/node"
  mkdir -p "$cache/node"
  cp "$here/node/package.json" "$here/node/package-lock.json" "$cache/node/"
  (cd "$cache/node" && npm ci --silent --ignore-scripts) || die "npm cannot install node-zookeeper-client"
  stamp node "$here/node/package-lock.json"
}

build_c() {
  fresh c "$here"/c/* && return
  say "compiling the C program"
  gcc -std=gnu11 -O1 -g -Wall -Wextra -Werror -DTHREADED -o "$cache/bin/interop-c" "$here"/c/*.c -lzookeeper_mt -lpthread ||
    die "gcc cannot build the C client's program"
  stamp c "$here"/c/*
}

# Debian builds the C client without TLS, so that one is built from the sources that the npm package "zookeeper" carries.
build_c_tls() {
  fresh c-tls "$here/node/package-lock.json" "$here"/c/* && return
  say "compiling the C client with TLS"
  local sources=$cache/node/zookeeper-client-c object
  rm -rf "$sources"
  tar -xzf "$cache/node/node_modules/zookeeper/deps/zookeeper-client-c.tar.gz" -C "$cache/node" 2>/dev/null || die "no sources of the C client"
  printf '#define %s 1\n' HAVE_SYS_TIME_H HAVE_SYS_SOCKET_H HAVE_POLL HAVE_NETINET_IN_H HAVE_ARPA_INET_H HAVE_NETDB_H \
    HAVE_UNISTD_H HAVE_SYS_UTSNAME_H HAVE_GETPWUID_R HAVE_GETUID HAVE_GETLOGIN HAVE_GETHOSTNAME >"$sources/src/config.h"
  printf '#define PACKAGE_STRING "zookeeper C client, with TLS"\n' >>"$sources/src/config.h"
  (cd "$sources" && gcc -w -O1 -D_GNU_SOURCE -DTHREADED -DHAVE_OPENSSL_H -Iinclude -Igenerated -Isrc -c src/addrvec.c src/mt_adaptor.c \
    src/recordio.c src/zk_hashtable.c src/zk_log.c src/zookeeper.c src/hashtable/hashtable*.c generated/zookeeper.jute.c) ||
    die "gcc cannot build the C client with TLS"
  mkdir -p "$sources/include/zookeeper"
  cp "$sources"/include/*.h "$sources"/generated/*.h "$sources/include/zookeeper/"
  gcc -std=gnu11 -O1 -g -Wall -Wextra -Werror -DTHREADED -DHAVE_OPENSSL_H -isystem "$sources/include" -o "$cache/bin/interop-c-tls" "$here"/c/*.c \
    "$sources"/*.o -lssl -lcrypto -lpthread -lm || die "gcc cannot build the C client's program with TLS"
  stamp c-tls "$here/node/package-lock.json" "$here"/c/*
}

build_telegraf() {
  fresh telegraf "$here"/telegraf/* && return
  say "compiling Telegraf's zookeeper input"
  (cd "$here/telegraf" && CGO_ENABLED=0 go build -o "$cache/bin/telegraf" .) || die "go cannot build Telegraf's input"
  stamp telegraf "$here"/telegraf/*
}

need go java javac mvn python3 node npm gcc dpkg-query
install_debian
install_java
build_java
install_python
install_node
build_c
build_c_tls
build_telegraf
say "clients are ready in $cache"
