# What the scripts beside it have in common: they source it with their own path in $0. It finds the binary, the folder of
# the configuration and that of the log. Where there is a bash, the script goes on in it: zookeeper-env.sh and java.env are
# often written for it.
#
#   ZABRA       the binary; without it zabra beside the scripts, then on the PATH
#   ZOOCFGDIR   the folder of zoo.cfg; without it conf or etc/zookeeper beside the folder of the scripts, or --config
#   ZOOCFG      the name of the file there, zoo.cfg
#   ZOO_LOG_DIR where the output of a server in the background goes, logs beside the folder of the scripts
#
# zookeeper-env.sh and java.env in the folder of the configuration are sourced.

if [ -z "$BASH_VERSION" ] && command -v bash >/dev/null 2>&1; then
  exec bash "$0" "$@"
fi

zoo_self=$(readlink -f "$0" 2>/dev/null) || zoo_self=$0
ZOOBINDIR=$(cd "$(dirname "$zoo_self")" && pwd)
ZOO_PREFIX=$(dirname "$ZOOBINDIR")

if [ "$1" = --config ]; then
  if [ ! -d "$2" ]; then
    echo "Error: $2 is not a folder" >&2
    exit 1
  fi
  ZOOCFGDIR=$2
  shift 2
fi
if [ -z "$ZOOCFGDIR" ]; then
  ZOOCFGDIR=$ZOO_PREFIX/conf
  [ -e "$ZOOCFGDIR" ] || ZOOCFGDIR=$ZOO_PREFIX/etc/zookeeper
fi

for zoo_file in "$ZOOCFGDIR/zookeeper-env.sh" "$ZOOCFGDIR/java.env"; do
  if [ -f "$zoo_file" ]; then
    . "$zoo_file"
  fi
done

ZOOCFG=$ZOOCFGDIR/${ZOOCFG:-zoo.cfg}
: "${ZOO_LOG_DIR:=$ZOO_PREFIX/logs}"

if [ -z "$ZABRA" ]; then
  if [ -x "$ZOOBINDIR/zabra" ]; then
    ZABRA=$ZOOBINDIR/zabra
  else
    ZABRA=$(command -v zabra) || {
      echo "Error: zabra is neither in $ZOOBINDIR nor on the PATH: copy it there, or set ZABRA to its path" >&2
      exit 1
    }
  fi
fi

# The files that zookeeper-env.sh and java.env set variables in are shell scripts, and the server reads its environment.
export JVMFLAGS SERVER_JVMFLAGS CLIENT_JVMFLAGS

# zoo_value KEY prints the value of a key of $ZOOCFG, and works with a file that is being edited, too.
zoo_value() {
  sed -n "s/^[[:space:]]*$1[[:space:]]*[=:[:space:]][[:space:]]*//p" "$ZOOCFG" 2>/dev/null | sed -n 's/[[:space:]]*$//; $p'
}
