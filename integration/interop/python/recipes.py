"""A process that takes part in recipes through kazoo: recipes.py HOSTS SESSION_MS NAME.

It is told what to do by lines on standard input and answers on standard output; integration/recipes_worker_test.go has the list.
"""
import logging
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.recipe.barrier import DoubleBarrier
from kazoo.recipe.election import Election
from kazoo.recipe.lock import Lock, ReadLock, WriteLock


class SharedLock(Lock):
    """kazoo's lock under the node names of Curator, <unique>-lock-<sequence>."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class SharedReadLock(Lock):
    """The reader's side of Curator's read-write lock."""

    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class SharedWriteLock(Lock):
    """The writer's side."""

    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Worker:
    def __init__(self, hosts, session_ms, name):
        self.name = name
        self.keep = threading.Event()
        self.freed = threading.Semaphore(0)
        self.stopping = threading.Event()
        self.turns = 0
        self.barrier = None
        patience = dict(max_tries=-1, delay=0.02, max_delay=0.2)
        self.zk = KazooClient(hosts=hosts, timeout=session_ms / 1000.0, connection_retry=dict(patience), command_retry=dict(patience))
        self.zk.start(timeout=60)

    def record(self, journal, node, token):
        """Makes the record of a holder. To repeat it after a lost connection does no harm."""

        def attempt():
            t = self.zk.transaction()
            t.check(node, -1)
            t.set_data(journal, b"%s %d" % (self.name.encode(), token))
            return t.commit()

        results = self.zk.retry(attempt)
        failed = [r for r in results if isinstance(r, Exception)]
        if not failed:
            return "accepted"
        if isinstance(failed[0], NoNodeError):
            return "refused"
        raise failed[0]

    def hold(self, journal, node):
        """What a holder does; node is the one by which it holds."""
        stat = self.zk.retry(self.zk.exists, node)
        if stat is None:
            say("GONE")
            return
        token = stat.czxid
        answer = self.record(journal, node, token)
        say(("IN %d" if answer == "accepted" else "REFUSED %d") % token)
        if answer == "accepted" and self.keep.is_set():
            self.keep.clear()
            say("KEPT %d" % token)
            self.freed.acquire()
            say("LATE " + self.record(journal, node, token))

    def under(self, lock, path, journal):
        lock.acquire()
        try:
            self.hold(journal, path + "/" + lock.node)
        finally:
            lock.release()

    def take_turn(self, kind, path, journal):
        sides = {"lock": [SharedLock], "rw": [SharedWriteLock, SharedReadLock, SharedReadLock],
                 "lock-stock": [Lock], "rw-stock": [WriteLock, ReadLock, ReadLock]}
        if kind in sides:
            side = sides[kind][self.turns % len(sides[kind])]
            self.turns += 1
            self.under(side(self.zk, path), path, journal)
        elif kind == "election":
            election = Election(self.zk, path, self.name)
            election.lock = SharedLock(self.zk, path, self.name)
            election.run(lambda: self.hold(journal, path + "/" + election.lock.node))
        else:
            raise ValueError(kind)

    def run(self, kind, path, journal):
        while not self.stopping.is_set():
            try:
                self.take_turn(kind, path, journal)
            except KazooException as err:
                say("FAULT %r" % err)
        self.stopping.clear()
        say("STOPPED")

    def enter(self, path, journal, members):
        self.barrier = DoubleBarrier(self.zk, path, int(members), self.name)
        self.barrier.enter()
        if not self.barrier.participating:
            raise RuntimeError("the barrier let nobody in")
        self.zk.retry(self.zk.set, journal, b"%s entered" % self.name.encode())
        say("ENTERED")

    def leave(self, journal):
        self.barrier.leave()
        self.zk.retry(self.zk.set, journal, b"%s left" % self.name.encode())
        say("LEFT")


def main():
    logging.basicConfig(level=logging.CRITICAL)
    worker = Worker(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    jobs = queue.Queue()

    def listen():
        # "keep", "free" and "stop" are for the job that is running.
        for line in sys.stdin:
            words = line.split()
            if words == ["keep"]:
                worker.keep.set()
            elif words == ["free"]:
                worker.freed.release()
            elif words == ["stop"]:
                worker.stopping.set()
            else:
                jobs.put(words)
        jobs.put(None)

    threading.Thread(target=listen, daemon=True).start()
    say("READY")
    for words in iter(jobs.get, None):
        {"run": worker.run, "enter": worker.enter, "leave": worker.leave}[words[0]](*words[1:])
    worker.zk.stop()
    worker.zk.close()


main()
