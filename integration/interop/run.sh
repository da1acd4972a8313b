#!/usr/bin/env bash
# Runs real clients, and the reference servers, against the server under test: bin/zabra, or what ZABRA_TEST_SERVER names
# (apache-3.9.5, apache-3.8.0), which is how the suite itself is checked. Arguments go to go test:
# integration/interop/run.sh -run TestInterop/kazoo
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."

server=${ZABRA_TEST_SERVER:-zabra}
binary=${ZABRA_BIN:-bin/zabra}
if [[ $server == zabra && ! -x $binary ]]; then
  echo "interop: FAIL: $binary is missing, run make build first" >&2
  exit 1
fi
"$here/install.sh"

output=$(mktemp)
trap 'rm -f "$output"' EXIT
start=$SECONDS
status=0
go test -tags interop -count=1 -p 1 -timeout 20m -v ./integration/... "$@" | tee "$output" || status=$?

# A summary in one place, behind the long output.
printf '\ninterop: results against %s\n' "$server"
sed -n -E 's/^ *--- (PASS|FAIL|SKIP): ([^ ]+) .*/\1 \2/p' "$output"
passed=$(grep -c -E '^ *--- PASS: ' "$output" || true)
failed=$(grep -c -E '^ *--- FAIL: ' "$output" || true)
skipped=$(grep -c -E '^ *--- SKIP: ' "$output" || true)
printf 'interop: %d s\n' $((SECONDS - start))
if ((skipped > 0 || passed == 0)); then
  echo "interop: FAIL: $skipped skipped, $passed passed: every check has to run" >&2
  status=1
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$status"
