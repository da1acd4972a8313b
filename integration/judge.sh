#!/usr/bin/env bash
# Lets clients loose on real processes, does faults to them, and judges every answer: runs of 60 seconds with 3 and with 5
# servers. integration/judge.sh [RUNS [SECONDS [SERVERS...]]], default 6 60 3 5. $JUDGE_SEED is the seed of the first run; each
# run prints its own. ZABRA_TEST_SERVER=apache-3.9.5 judges the reference server.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
runs=${1:-6} seconds=${2:-60}
servers=("${@:3}")
((${#servers[@]})) || servers=(3 5)
seed=${JUDGE_SEED:-$RANDOM$RANDOM}
[[ ${ZABRA_TEST_SERVER:-zabra} != zabra || -x ${ZABRA_BIN:-bin/zabra} ]] || { echo "judge: run make build first" >&2; exit 1; }
test=$(mktemp)
trap 'rm -f "$test"' EXIT
go test -tags interop -c -o "$test" ./integration/judge
failed=0
for n in "${servers[@]}"; do
  for ((run = 0; run < runs; run++)); do
    (cd integration/judge && "$test" -test.run '^TestJudge$' -test.v -test.timeout 30m \
      -judge.duration "${seconds}s" -judge.servers "$n" -judge.seed $((seed + run))) || failed=$((failed + 1))
  done
done
printf 'judge: %d of %d runs failed\n' "$failed" $((runs * ${#servers[@]}))
exit $((failed > 0))
