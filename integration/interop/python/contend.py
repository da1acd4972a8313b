"""Adds one to a counter under a lock that Curator and go-zookeeper share: contend.py HOST:PORT LOCK COUNTER ROUNDS."""
import logging
import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class SharedLock(Lock):
    """kazoo's lock under the node names of Curator and go-zookeeper, <unique>-lock-<sequence>."""

    _NODE_NAME = "-lock-"


logging.basicConfig(level=logging.CRITICAL)
address, path, counter, rounds = sys.argv[1:5]
zk = KazooClient(hosts=address, timeout=9.0)
zk.start(timeout=30)
print("READY", flush=True)
sys.stdin.readline()
lock = SharedLock(zk, path, extra_lock_patterns=["-lock-"])
for _ in range(int(rounds)):
    if not lock.acquire(timeout=60):
        sys.exit("no lock within a minute")
    value = int(zk.get(counter)[0])
    zk.set(counter, b"%d" % (value + 1))
    lock.release()
print("DONE", flush=True)
zk.stop()
zk.close()
