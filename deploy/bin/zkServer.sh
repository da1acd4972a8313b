#!/bin/sh
# Starts, stops and asks after a server, with the verbs, files and exit codes of ZooKeeper's script of this name.

zoo_lib=$(readlink -f "$0" 2>/dev/null) || zoo_lib=$0
. "$(dirname "$zoo_lib")/zkEnv.sh"

# A configuration as second argument: a path, or a name in the folder of the configuration.
case $2 in
  '') ;;
  */*) ZOOCFG=$2 ;;
  *) ZOOCFG=$ZOOCFGDIR/$2 ;;
esac
echo "Using config: $ZOOCFG" >&2

host=${HOSTNAME:-$(uname -n)}
user=${USER:-$(id -un)}
out=$ZOO_LOG_DIR/zookeeper-$user-server-$host.out

# The properties of a server: the name of its class is for those who look for it in the list of processes.
set_flags() {
  flags=-Dzabra.stands.in.for=org.apache.zookeeper.server.quorum.QuorumPeerMain
  if [ -n "$ZOO_DATADIR_AUTOCREATE_DISABLE" ]; then
    flags="$flags -Dzookeeper.datadir.autocreate=false"
  fi
  level=$(printf %s "${ZOO_LOG4J_PROP%%,*}" | tr '[:upper:]' '[:lower:]')
  case $level in
    debug | info | warn | error) flags="$flags --log-level=$level" ;;
    trace | all) flags="$flags --log-level=debug" ;;
  esac
}

# The folders of the data and the file with the number of the process, which start and stop need.
set_files() {
  data=$(zoo_value dataDir)
  log=$(zoo_value dataLogDir)
  if [ -n "$ZOO_DATADIR_AUTOCREATE_DISABLE" ]; then
    if [ ! -d "$data/version-2" ]; then
      echo "ZooKeeper data directory is missing at $data fix the path or run initialize"
      exit 1
    fi
    if [ -n "$log" ] && [ ! -d "$log/version-2" ]; then
      echo "ZooKeeper txnlog directory is missing at $log fix the path or run initialize"
      exit 1
    fi
  fi
  if [ -z "$ZOOPIDFILE" ]; then
    if [ -z "$data" ]; then
      echo "dataDir is not set in $ZOOCFG" >&2
      exit 1
    fi
    ZOOPIDFILE=$data/zookeeper_server.pid
  fi
}

# running tells whether the process with that number lives. One that has ended and that nobody asked after does not.
running() {
  kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# ours tells whether the process with that number is a server: the number in a file that was left behind may belong to
# anything by now. Where the system does not tell, it is.
ours() {
  [ ! -r "/proc/$1/cmdline" ] || grep -q -e QuorumPeerMain -e zabra "/proc/$1/cmdline"
}

# answers tells whether a server answers on the client port of the configuration.
answers() { "$ZABRA" health --timeout=1s --config "$ZOOCFG" >/dev/null 2>&1; }

# pause waits a tenth of a second, or a second where sleep knows whole ones only.
pause() { sleep 0.1 2>/dev/null || sleep 1; }

start() {
  set_flags
  set_files
  mkdir -p "$(dirname "$ZOOPIDFILE")" "$ZOO_LOG_DIR" || exit 1
  printf 'Starting zookeeper ... '
  if [ -f "$ZOOPIDFILE" ]; then
    pid=$(cat "$ZOOPIDFILE")
    if running "$pid" && ours "$pid"; then
      echo "already running as process $pid."
      exit 1
    fi
  fi
  stranger=
  if answers; then
    stranger=yes # on the port that the server needs: what answers below is not the server
  fi
  # shellcheck disable=SC2086 # the flags are words
  nohup "$ZABRA" server $flags "$ZOOCFG" >"$out" 2>&1 </dev/null &
  pid=$!
  if ! printf %s "$pid" >"$ZOOPIDFILE"; then
    echo "FAILED TO WRITE PID"
    kill "$pid"
    exit 1
  fi
  # A server that has much data to load is given up waiting for, not given up.
  tries=0
  while running "$pid" && [ "$tries" -lt 100 ]; do
    if [ -z "$stranger" ] && answers; then
      break
    fi
    pause
    tries=$((tries + 1))
  done
  if running "$pid"; then
    echo STARTED
    return
  fi
  rm -f "$ZOOPIDFILE"
  echo "FAILED TO START"
  echo "The end of $out:" >&2
  tail -n 5 "$out" >&2
  exit 1
}

# stop waits until the process has ended, which a server that has much to finish needs up to ten seconds for.
stop() {
  set_files
  printf 'Stopping zookeeper ... '
  if [ ! -f "$ZOOPIDFILE" ]; then
    echo "no zookeeper to stop (could not find file $ZOOPIDFILE)"
    return
  fi
  pid=$(cat "$ZOOPIDFILE")
  rm -f "$ZOOPIDFILE"
  if running "$pid" && ! ours "$pid"; then
    echo "process $pid is another program, and is left alone: the server had ended before" >&2
    echo STOPPED
    return
  fi
  kill "$pid" 2>/dev/null
  tries=0
  while running "$pid" && [ "$tries" -lt 150 ]; do
    pause
    tries=$((tries + 1))
  done
  if running "$pid"; then
    echo "process $pid has been told to stop, and has not ended yet" >&2
  fi
  echo STOPPED
}

case $1 in
  start)
    start
    ;;
  start-foreground)
    set_flags
    if [ -n "$ZOO_DATADIR_AUTOCREATE_DISABLE" ]; then
      set_files
    fi
    if [ -n "$ZOO_NOEXEC" ]; then
      # shellcheck disable=SC2086
      "$ZABRA" server $flags "$ZOOCFG"
      exit
    fi
    # shellcheck disable=SC2086
    exec "$ZABRA" server $flags "$ZOOCFG"
    ;;
  print-cmd)
    set_flags
    echo "\"$ZABRA\" server $flags \"$ZOOCFG\" > \"$out\" 2>&1 < /dev/null"
    ;;
  stop)
    stop
    exit 0
    ;;
  restart)
    (stop)
    start
    ;;
  status)
    exec "$ZABRA" status "$ZOOCFG"
    ;;
  version)
    exec "$ZABRA" version --zookeeper
    ;;
  *)
    echo "Usage: $0 [--config <conf-dir>] {start|start-foreground|stop|version|restart|status|print-cmd}" >&2
    ;;
esac
