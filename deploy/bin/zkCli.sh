#!/bin/sh
# A client for the command line, in place of ZooKeeper's script of this name.

zoo_lib=$(readlink -f "$0" 2>/dev/null) || zoo_lib=$0
. "$(dirname "$zoo_lib")/zkEnv.sh"

exec "$ZABRA" cli "$@"
