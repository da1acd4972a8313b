#!/usr/bin/env bash
# Measures Zabra and the reference server in turn, three rounds each, and prints medians and ratios. It takes about three
# minutes. Arguments go to the comparison: integration/compare.sh -b apache-3.9.5 -rounds 5; with -servers 3 both are ensembles.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/bench.sh" compare "$@"
