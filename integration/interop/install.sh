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
  for package in libzookeeper-mt-dev libzookeeper-java libslf4j-java; do
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

need java javac mvn python3 node npm gcc dpkg-query
install_debian
install_java
build_java
install_python
install_node
build_c
say "clients are ready in $cache"
