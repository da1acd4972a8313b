#!/bin/sh
# Removes old snapshots and logs of a server, in place of ZooKeeper's script of this name: zkCleanup.sh -n COUNT

zoo_lib=$(readlink -f "$0" 2>/dev/null) || zoo_lib=$0
. "$(dirname "$zoo_lib")/zkEnv.sh"

data=$(zoo_value dataDir)
log=$(zoo_value dataLogDir)
if [ -z "$data" ]; then
  echo "dataDir is not set in $ZOOCFG" >&2
  exit 1
fi

exec "$ZABRA" purge "${log:-$data}" "$data" "$@"
