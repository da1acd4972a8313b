#!/usr/bin/env bash
# Measures Zabra and the reference server in turn, three rounds each, and prints medians and ratios. It takes about three
# minutes. Arguments go to the comparison: integration/compare.sh -b apache-3.9.5 -rounds 5
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
[[ -x ${ZABRA_BIN:-bin/zabra} ]] || { echo "compare: run make build first" >&2; exit 1; }
integration/interop/install.sh
mkdir -p .interop/bin
go build -o .interop/bin/bench ./integration/bench
exec .interop/bin/bench compare "$@"
