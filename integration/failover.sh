#!/usr/bin/env bash
# Kills the leader of three servers 30 times under write load, stops it with SIGTERM as often, and prints for how long clients of
# the others and of the one that went could not write: Zabra and the reference server, on tickTime 2000. Fails when Zabra is
# slower than it has to be. About ten minutes; for a short look: integration/failover.sh -rounds 5 -kinds zabra
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/bench.sh" failover -kill-median 250ms -kill-worst 800ms -term-median 100ms "$@"
