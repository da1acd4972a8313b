#!/usr/bin/env bash
# Builds the measuring program and runs it: integration/bench.sh VERB ARGUMENTS. The servers that the verbs start are bin/zabra,
# or $ZABRA_BIN, and the reference servers.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
[[ -x ${ZABRA_BIN:-bin/zabra} ]] || { echo "bench: run make build first" >&2; exit 1; }
integration/interop/install.sh
mkdir -p .interop/bin
go build -o .interop/bin/bench ./integration/bench
exec .interop/bin/bench "$@"
