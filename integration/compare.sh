#!/usr/bin/env bash
# Measures Zabra and the reference server in turn, five rounds, and writes docs/benchmarks.md; about 40 minutes. Arguments go to the
# comparison: integration/compare.sh -rows get-64x16,set-64x16 -rounds 3; -quick shows within some minutes that everything works.
# What has a result is not measured again: a comparison that was stopped goes on where it was. After a change of the code
# start with -again, or remove .interop/compare.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
status=0
integration/bench.sh compare "$@" || status=$?
for argument in "$@"; do
  case ${argument/#--/-} in
    -quick) # not into docs
      integration/bench.sh render -quick -out .interop/compare-quick/benchmarks.md || exit
      exit "$status" ;;
    -list | -h | -help | -results* | -reference*) exit "$status" ;; # bench render makes a document of those
  esac
done
integration/bench.sh render || exit
exit "$status"
