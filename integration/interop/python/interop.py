"""kazoo at work: every operation, the recipes, watches and reconnects."""
import logging
import os
import re
import subprocess
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.protocol.states import EventType, KazooState
from kazoo.recipe.cache import TreeCache
from kazoo.recipe.watchers import PatientChildrenWatch
from kazoo.security import ACL, Id, make_acl, make_digest_acl

from report import call, check, equal, eventually, run

logging.basicConfig(level=logging.CRITICAL)
address = sys.argv[1]
TIMEOUT = 9.0  # seconds; within the server's bounds, longer than a restart of the slowest server


class Client:
    """A started KazooClient as a context manager."""

    def __init__(self, **kwargs):
        kwargs.setdefault("timeout", TIMEOUT)
        kwargs.setdefault("connection_retry", {"max_tries": -1, "delay": 0.05, "backoff": 1.5, "max_delay": 0.5})
        self.client = KazooClient(hosts=kwargs.pop("hosts", address), **kwargs)

    def __enter__(self):
        self.client.start(timeout=30)
        return self.client

    def __exit__(self, *exc):
        self.client.stop()
        self.client.close()


def raises(error, func, *args, **kwargs):
    try:
        func(*args, **kwargs)
    except error as err:
        equal(type(err), error, "exception of %s" % getattr(func, "__name__", func))
        return
    raise AssertionError("%s%r did not raise %s" % (getattr(func, "__name__", func), args, error.__name__))


class Events:
    """A watch function that keeps what it was called with."""

    def __init__(self):
        self.seen = []
        self.cond = threading.Condition()

    def __call__(self, event):
        with self.cond:
            self.seen.append((event.type, event.path))
            self.cond.notify_all()

    def expect(self, *want):
        with self.cond:
            self.cond.wait_for(lambda: len(self.seen) >= len(want), timeout=15)
            equal(self.seen, list(want), "events")


@check
def version_and_words():
    with Client() as zk:
        equal(zk.server_version()[:1], (3,), "major version")
        equal(zk.command(b"ruok"), "imok", "ruok")
        equal(zk.command(b"isro"), "rw", "isro")
        modes = ("leader", "follower") if os.environ.get("INTEROP_ENSEMBLE") else ("standalone",)
        assert re.search("^Mode: (.*)$", zk.command(b"srvr"), re.M).group(1) in modes, "srvr"
        assert "zk_znode_count\t" in zk.command(b"mntr"), "mntr"


# command() takes one piece of 8192 bytes, so that the end of mntr is missing.
WORDS = {
    "conf": r"clientPort=\d+\nsecureClientPort=-1\ndataDir=\S+\n.*serverId=\d+\n.*",
    "cons": r"( /127\.0\.0\.1:\d+\[\d\]\(queued=\d+,recved=\d+,sent=\d+(,sid=0x[0-9a-f]+,lop=\w+,[^\n]*)?\)\n)+\n",
    "dirs": r"datadir_size: \d+\nlogdir_size: \d+\n",
    "dump": r"SessionTracker dump:\n.*ephemeral nodes dump:\nSessions with Ephemerals \(\d+\):\n.*Connections dump:\n.*",
    "envi": r"Environment:\nzookeeper\.version=\d+\.\d+\.\d+.*os\.memory\.total=\d+MB\n",
    "gtmk": r"\d+",
    "mntr": r"zk_version\t\d+\.\d+\.\d+[^\n]*\nzk_server_state\t\w+\n(zk_\w+\t[^\t\n]+\n)+.*",
    "srvr": r"Zookeeper version: \d+\.\d+\.\d+[^\n]*, built on [^\n]*\nLatency min/avg/max: [^\n]*\n.*Node count: \d+\n.*",
    "stat": r"Zookeeper version: \d+\.\d+\.\d+[^\n]*, built on [^\n]*\nClients:\n( /[^\n]*\n)+\nLatency min/avg/max: .*",
    "wchs": r"\d+ connections watching \d+ paths\nTotal watches:\d+\n",
    "wchc": r"(0x[0-9a-f]+\n(\t/[^\n]*\n)+)*\n",
    "wchp": r"(/[^\n]*\n(\t0x[0-9a-f]+\n)+)*\n",
}


@check
def every_word():
    with Client() as zk:
        equal(len(zk.server_version()), 3, "numbers of the version")
        for word, pattern in WORDS.items():
            answer = zk.command(word.encode())
            assert re.fullmatch(pattern, answer, re.S), "%s answered %r" % (word, answer)


class Granted(logging.Handler):
    """Keeps the session timeouts that servers granted; kazoo tells them in its log alone."""

    def __init__(self):
        super().__init__(1)
        self.timeouts = []

    def emit(self, record):
        found = re.search(r"negotiated session timeout: (\d+)", record.getMessage())
        if found:
            self.timeouts.append(int(found.group(1)))


@check
def session_handshake():
    granted = Granted()
    logger = logging.getLogger("interop.granted")
    logger.addHandler(granted)
    logger.setLevel(1)  # kazoo says it below DEBUG
    logger.propagate = False
    with Client(logger=logger) as zk:
        session, password = zk.client_id
        assert session not in (0, -1) and len(password) == 16 and any(password)
    with Client(timeout=0.5, logger=logger):
        pass
    with Client(timeout=3600, logger=logger):
        pass
    equal(granted.timeouts, [int(TIMEOUT * 1000), 1000, 10000], "as asked, raised to 2 ticks, lowered to 20 ticks")


@check
def create_get_set_delete():
    with Client() as zk:
        zk.ensure_path("/k/crud")
        equal(zk.create("/k/crud/a", b"one"), "/k/crud/a")
        data, stat = zk.get("/k/crud/a")
        equal(data, b"one")
        equal((stat.version, stat.cversion, stat.aversion, stat.ephemeralOwner), (0, 0, 0, 0))
        equal((stat.dataLength, stat.numChildren), (3, 0))
        equal((stat.czxid, stat.pzxid), (stat.mzxid, stat.czxid))
        equal(stat.ctime, stat.mtime)
        assert abs(stat.ctime / 1000.0 - time.time()) < 30, "ctime is in milliseconds"
        changed = zk.set("/k/crud/a", b"three", version=0)
        equal((changed.version, changed.dataLength), (1, 5))
        assert changed.mzxid > stat.mzxid and changed.czxid == stat.czxid
        raises(BadVersionError, zk.set, "/k/crud/a", b"x", version=0)
        raises(BadVersionError, zk.delete, "/k/crud/a", version=0)
        raises(NodeExistsError, zk.create, "/k/crud/a", b"")
        raises(NoNodeError, zk.create, "/k/crud/none/b", b"")
        raises(NoNodeError, zk.get, "/k/crud/none")
        raises(NoNodeError, zk.set, "/k/crud/none", b"")
        raises(NoNodeError, zk.delete, "/k/crud/none")
        equal(zk.exists("/k/crud/none"), None)
        zk.create("/k/crud/a/b", b"")
        raises(NotEmptyError, zk.delete, "/k/crud/a")
        equal(zk.exists("/k/crud/a").numChildren, 1)
        zk.delete("/k/crud/a", recursive=True)
        equal(zk.exists("/k/crud/a"), None)
        path, stat = zk.create("/k/crud/deep/er/x", b"12", makepath=True, include_data=True)
        equal(path, "/k/crud/deep/er/x")
        equal(stat, zk.exists(path), "stat of create2")


@check
def empty_and_null_data():
    with Client() as zk:
        zk.ensure_path("/k/data")
        zk.create("/k/data/empty", b"")
        equal(zk.get("/k/data/empty")[0], b"")
        zk.create("/k/data/big", bytes(range(256)) * 4000)
        equal(zk.get("/k/data/big")[0], bytes(range(256)) * 4000, "a node of 1,024,000 bytes")


@check
def sequences():
    with Client() as zk:
        zk.ensure_path("/k/seq")
        equal(zk.create("/k/seq/n-", b"", sequence=True), "/k/seq/n-0000000000")
        zk.create("/k/seq/plain", b"")
        equal(zk.create("/k/seq/n-", b"", sequence=True), "/k/seq/n-0000000002")
        zk.delete("/k/seq/n-0000000002")
        equal(zk.create("/k/seq/m-", b"", sequence=True, ephemeral=True), "/k/seq/m-0000000003")
        equal(zk.create("/k/seq/", b"", sequence=True), "/k/seq/0000000004")
        raises(NodeExistsError, zk.create, "/k/seq/plain", b"")
        equal(zk.create("/k/seq/n-", b"", sequence=True), "/k/seq/n-0000000005")


@check
def ephemerals_vanish_on_close():
    with Client() as watcher:
        watcher.ensure_path("/k/eph")
        with Client() as zk:
            zk.create("/k/eph/e", b"x", ephemeral=True)
            equal(watcher.get("/k/eph/e")[1].ephemeralOwner, zk.client_id[0], "owner")
            raises(NoChildrenForEphemeralsError, zk.create, "/k/eph/e/child", b"")
            zk.set("/k/eph/e", b"y")
            equal(watcher.get("/k/eph/e")[1].ephemeralOwner, zk.client_id[0], "owner after set")
            events = Events()
            assert watcher.exists("/k/eph/e", watch=events)
        events.expect((EventType.DELETED, "/k/eph/e"))
        equal(watcher.get_children("/k/eph"), [])
        watcher.delete("/k/eph")


@check
def children():
    with Client() as zk:
        zk.ensure_path("/k/children")
        for name in "abc":
            zk.create("/k/children/" + name, b"")
        equal(sorted(zk.get_children("/k/children")), ["a", "b", "c"])
        names, stat = zk.get_children("/k/children", include_data=True)
        equal((sorted(names), stat.numChildren, stat.cversion), (["a", "b", "c"], 3, 3))
        zk.delete("/k/children/b")
        equal(zk.exists("/k/children").cversion, 4, "cversion counts creates and deletes")
        assert "zookeeper" in zk.get_children("/")
        raises(NoNodeError, zk.get_children, "/k/none")
        raises(BadArgumentsError, zk.delete, "/zookeeper")


@check
def big_list_of_children():
    count = 12000
    name = "child-with-a-rather-long-name-%08d"
    with Client() as zk:
        zk.ensure_path("/k/many")
        for start in range(0, count, 2000):
            request = zk.transaction()
            for i in range(start, start + 2000):
                request.create("/k/many/" + name % i, b"")
            equal(len(request.commit()), 2000, "transaction results")
        got = zk.get_children("/k/many")
        equal(len(got), count)
        equal(set(got), {name % i for i in range(count)}, "names")
        for start in range(0, count, 2000):
            request = zk.transaction()
            for n in got[start : start + 2000]:
                request.delete("/k/many/" + n)
            equal(request.commit(), [True] * 2000, "transaction results")
        equal(zk.exists("/k/many").numChildren, 0)


@check
def unicode_names():
    with Client() as zk:
        zk.ensure_path("/k/unicode")
        names = ["grüße", "日本語", "кириллица", "with space", "…", "a.b", "...x", "\u00a0nbsp"]
        for n in names:
            equal(zk.create("/k/unicode/" + n, n.encode()), "/k/unicode/" + n)
        equal(sorted(zk.get_children("/k/unicode")), sorted(names))
        for n in names:
            equal(zk.get("/k/unicode/" + n)[0], n.encode())
        for bad in ["\ud7ff\ue000", "a\u0001", "a\u0085", "a\ufffd", "\U0001f600"]:
            raises(BadArgumentsError, zk.create, "/k/unicode/" + bad, b"")


@check
def watches_fire_once():
    with Client() as zk, Client() as other:
        zk.ensure_path("/k/watch")
        data, exists, child, parent = Events(), Events(), Events(), Events()
        equal(zk.exists("/k/watch/n", watch=exists), None)
        zk.get_children("/k/watch", watch=parent)
        other.create("/k/watch/n", b"0")
        exists.expect((EventType.CREATED, "/k/watch/n"))
        parent.expect((EventType.CHILD, "/k/watch"))
        zk.get("/k/watch/n", watch=data)
        zk.get_children("/k/watch/n", watch=child)
        other.create("/k/watch/n/c", b"")
        child.expect((EventType.CHILD, "/k/watch/n"))
        other.set("/k/watch/n", b"1")
        data.expect((EventType.CHANGED, "/k/watch/n"))
        other.set("/k/watch/n", b"2")
        other.set("/k/watch/n/c", b"no child event for this")
        gone = Events()
        zk.get("/k/watch/n/c", watch=gone)
        other.delete("/k/watch/n/c")
        gone.expect((EventType.DELETED, "/k/watch/n/c"))
        zk.sync("/k/watch")
        for events in (data, exists, child, parent):
            equal(len(events.seen), 1, "events of a one-shot watch")


@check
def data_watch_and_children_watch():
    with Client() as zk, Client() as other:
        zk.ensure_path("/k/dw")
        values, lists = [], []
        zk.DataWatch("/k/dw/n", lambda data, stat: values.append((data, stat and stat.version)))
        zk.ChildrenWatch("/k/dw", lambda names: lists.append(sorted(names)))
        equal((values, lists), ([(None, None)], [[]]), "first calls")
        # Each step waits for the watch: a watch that is re-armed may rightly miss a value between two others.
        other.create("/k/dw/n", b"0")
        eventually(lambda: values[-1] == (b"0", 0) and lists[-1] == ["n"], what="created")
        other.set("/k/dw/n", b"1")
        eventually(lambda: values[-1] == (b"1", 1), what="changed")
        other.create("/k/dw/o", b"")
        eventually(lambda: lists[-1] == ["n", "o"], what="second child")
        other.delete("/k/dw/n")
        eventually(lambda: values[-1] == (None, None) and lists[-1] == ["o"], what="deleted")


@check
def watches_after_reconnect():
    with Client() as zk, Client() as other:
        zk.ensure_path("/k/rewatch")
        values, lists = [], []
        zk.create("/k/rewatch/n", b"0")
        zk.DataWatch("/k/rewatch/n", lambda data, stat: values.append(data))
        zk.ChildrenWatch("/k/rewatch", lambda names: lists.append(sorted(names)))
        session = zk.client_id[0]
        call("cut")
        other.retry(other.set, "/k/rewatch/n", b"1")
        other.retry(other.create, "/k/rewatch/m", b"")
        eventually(lambda: values[-1] == b"1" and lists[-1] == ["m", "n"], what="watches work on the new connection")
        equal(zk.client_id[0], session, "session id")


@check
def session_survives_restart():
    for how in ("restart", "kill"):
        with Client() as zk:
            states = []
            zk.add_listener(states.append)
            base = "/k/restart-" + how
            zk.ensure_path(base)
            zk.create(base + "/e", b"mine", ephemeral=True)
            zk.create(base + "/s-", b"", sequence=True)
            session = zk.client_id
            before = zk.get(base + "/e")[1]
            call(how)
            eventually(lambda: states[-1:] == [KazooState.CONNECTED], 30, "connected again after " + how)
            equal(states, [KazooState.SUSPENDED, KazooState.CONNECTED], "states after " + how)
            equal(zk.client_id, session, "session after " + how)
            equal(zk.retry(zk.get, base + "/e"), (b"mine", before), "ephemeral after " + how)
            equal(zk.create(base + "/s-", b"", sequence=True), base + "/s-0000000002", "counter after " + how)
            owner = zk.exists(base + "/e").ephemeralOwner
            equal(owner, session[0], "owner after " + how)
        with Client() as zk:
            equal(sorted(zk.get_children(base)), ["s-0000000001", "s-0000000002"], "after close")


DYING = """
import sys
from kazoo.client import KazooClient
zk = KazooClient(hosts=sys.argv[1], timeout=1.0)
zk.start(timeout=30)
zk.create("/k/expire/e", b"", ephemeral=True)
print(zk.client_id[0], zk.client_id[1].hex(), flush=True)
sys.stdin.readline()
"""


@check
def session_expires():
    with Client() as watcher:
        watcher.ensure_path("/k/expire")
        dying = subprocess.Popen([sys.executable, "-c", DYING, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        session, password = dying.stdout.readline().decode().split()
        events = Events()
        equal(watcher.exists("/k/expire/e", watch=events).ephemeralOwner, int(session), "owner")
        dying.kill()
        dying.wait()
        killed = time.monotonic()
        events.expect((EventType.DELETED, "/k/expire/e"))
        silent = time.monotonic() - killed
        # The last ping was at most a third of the timeout before the end; a tick of 0.5 s is added at most.
        assert 0.6 < silent < 4, "expired after %.2f s of a timeout of 1 s" % silent
        late = KazooClient(hosts=address, timeout=1.0, client_id=(int(session), bytes.fromhex(password)))
        late.start(timeout=30)
        assert late.client_id[0] != int(session), "an expired session came back"
        late.stop()
        late.close()


@check
def transactions():
    with Client() as zk:
        zk.ensure_path("/k/tx")
        t = zk.transaction()
        t.create("/k/tx/a", b"1")
        t.create("/k/tx/s-", b"", sequence=True)
        t.create("/k/tx/e", b"", ephemeral=True)
        t.set_data("/k/tx/a", b"2")
        t.check("/k/tx/a", 1)
        t.create("/k/tx/gone", b"")
        t.delete("/k/tx/gone")
        results = t.commit()
        equal(results[:3], ["/k/tx/a", "/k/tx/s-0000000001", "/k/tx/e"])
        # The stat of a set in a transaction is the node right after that step.
        equal((results[3].version, results[3].dataLength), (1, 1))
        equal(results[4:], [True, "/k/tx/gone", True])
        stats = [zk.exists(p) for p in results[:3]]
        equal(len({s.czxid for s in stats}), 1, "one zxid for the whole transaction")
        t = zk.transaction()
        t.create("/k/tx/b", b"")
        t.delete("/k/tx/none")
        t.create("/k/tx/c", b"")
        results = t.commit()
        equal([type(r).__name__ for r in results], ["RolledBackError", "NoNodeError", "RuntimeInconsistency"])
        equal(sorted(zk.get_children("/k/tx")), ["a", "e", "s-0000000001"])
        t = zk.transaction()
        t.check("/k/tx/a", 7)
        equal([type(r) for r in t.commit()], [BadVersionError])
        equal(zk.transaction().commit(), [], "an empty transaction")
        with zk.transaction() as t:
            t.create("/k/tx/with", b"")
        assert zk.exists("/k/tx/with")


@check
def acls_and_auth():
    with Client() as zk, Client() as other:
        zk.ensure_path("/k/acl")
        zk.add_auth("digest", "alice:secret")
        mine = make_digest_acl("alice", "secret", all=True)
        zk.create("/k/acl/mine", b"private", acl=[mine])
        acls, stat = zk.get_acls("/k/acl/mine")
        equal(acls, [mine])
        equal(stat.aversion, 0)
        for refused in (
            lambda: other.get("/k/acl/mine"),
            lambda: other.set("/k/acl/mine", b""),
            lambda: other.get_children("/k/acl/mine"),
            lambda: other.create("/k/acl/mine/c", b""),
            lambda: other.set_acls("/k/acl/mine", [make_acl("world", "anyone", all=True)]),
            lambda: other.get_acls("/k/acl/mine"),
        ):
            raises(NoAuthError, refused)
        other.add_auth("digest", "alice:secret")
        equal(other.get("/k/acl/mine")[0], b"private")
        mixed = [make_acl("world", "anyone", read=True), make_acl("ip", "127.0.0.1", read=True, write=True), mine]
        equal(zk.set_acls("/k/acl/mine", mixed, version=0).aversion, 1)
        raises(BadVersionError, zk.set_acls, "/k/acl/mine", mixed, version=0)
        with Client() as third:
            third.set("/k/acl/mine", b"by address")
            raises(NoAuthError, third.delete, "/k/acl/mine/none")
            masked = third.get_acls("/k/acl/mine")[0][2]
            equal(masked.id, Id("digest", "alice:x"), "hash hidden from those without ADMIN")
        raises(InvalidACLError, zk.create, "/k/acl/bad", b"", acl=[make_acl("nope", "x", all=True)])
        raises(InvalidACLError, zk.create, "/k/acl/bad", b"", acl=[make_acl("ip", "no.address", all=True)])
        zk.create("/k/acl/auth", b"", acl=[ACL(31, Id("auth", ""))])
        equal(zk.get_acls("/k/acl/auth")[0], [mine], "auth stands for the caller's identities")
    with Client(auth_data=[("digest", "alice:secret")]) as zk:
        equal(zk.get("/k/acl/auth")[0], b"", "auth_data on connect")
        call("cut")
        equal(zk.retry(zk.get, "/k/acl/auth")[0], b"", "auth repeated on reconnect")
    zk = KazooClient(hosts=address, timeout=TIMEOUT)
    zk.start(timeout=30)
    raises(AuthFailedError, zk.add_auth, "no-such-scheme", "x")
    zk.stop()
    zk.close()


@check
def super_user():
    with Client() as zk, Client(auth_data=[("digest", "super:test")]) as root:
        zk.ensure_path("/k/super")
        zk.create("/k/super/locked", b"x", acl=[make_digest_acl("nobody", "knows", all=True)])
        raises(NoAuthError, zk.get, "/k/super/locked")
        equal(root.get("/k/super/locked")[0], b"x")
        root.set_acls("/k/super/locked", [make_acl("world", "anyone", all=True)])
        equal(zk.get("/k/super/locked")[0], b"x")


@check
def chroot():
    with Client() as zk:
        zk.ensure_path("/k/chroot/inner")
    with Client(hosts=address + "/k/chroot") as zk:
        equal(zk.get_children("/"), ["inner"])
        equal(zk.create("/inner/s-", b"", sequence=True), "/inner/s-0000000000")
        events = Events()
        zk.exists("/inner/x", watch=events)
        zk.create("/inner/x", b"")
        events.expect((EventType.CREATED, "/inner/x"))
        equal(zk.sync("/inner"), "/inner")


@check
def sync_and_async():
    with Client() as zk:
        zk.ensure_path("/k/async")
        equal(zk.sync("/k/async"), "/k/async")
        results = [zk.create_async("/k/async/n-", b"%d" % i, sequence=True) for i in range(1000)]
        paths = [r.get(timeout=30) for r in results]
        equal(paths, ["/k/async/n-%010d" % i for i in range(1000)], "pipelined sequential creates keep their order")
        gets = [zk.get_async(p) for p in paths]
        equal([int(g.get(timeout=30)[0]) for g in gets], list(range(1000)))
        # A read behind a write of the same session sees it.
        for i in range(50):
            zk.set_async("/k/async", b"%d" % i)
            equal(zk.get("/k/async")[0], b"%d" % i, "read your writes")


@check
def read_only_client():
    with Client(read_only=True) as zk:
        zk.ensure_path("/k/ro")
        equal(zk.client_state, "CONNECTED")


@check
def reconfig_is_refused():
    with Client(auth_data=[("digest", "super:test")]) as zk:
        try:
            zk.reconfig(joining="server.9=127.0.0.1:1:2:participant;3", leaving=None, new_members=None)
        except KazooException:
            pass
        else:
            raise AssertionError("reconfig was accepted")
        equal(zk.exists("/k") is not None, True, "the session lives on")


def contend(make, workers, rounds, base):
    """Runs workers with a session each; whoever holds the lock adds one to a counter without any atomic operation."""
    with Client() as zk:
        zk.ensure_path(base)
        zk.create(base + "-count", b"0")
    errors = []

    def work():
        try:
            with Client() as zk:
                for _ in range(rounds):
                    with make(zk, base):
                        value = int(zk.get(base + "-count")[0])
                        zk.set(base + "-count", b"%d" % (value + 1))
        except Exception as err:
            errors.append(err)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    equal(errors, [])
    with Client() as zk:
        equal(int(zk.get(base + "-count")[0]), workers * rounds, "increments under the lock")
        equal(zk.get_children(base), [], "contenders left")


@check
def lock():
    contend(lambda zk, p: zk.Lock(p, "worker"), 5, 20, "/k/lock")
    with Client() as a, Client() as b:
        first = a.Lock("/k/lock2", "first")
        second = b.Lock("/k/lock2", "second")
        assert first.acquire()
        equal(second.acquire(blocking=False), False)
        equal(second.contenders(), ["first"])
        a.stop()  # the lock goes with the session
        assert second.acquire(timeout=15)
        second.release()


@check
def read_write_lock():
    contend(lambda zk, p: zk.WriteLock(p, "writer"), 3, 10, "/k/rwlock")
    with Client() as a, Client() as b:
        ra, rb = a.ReadLock("/k/rwlock2"), b.ReadLock("/k/rwlock2")
        assert ra.acquire() and rb.acquire(timeout=10), "readers share"
        w = b.WriteLock("/k/rwlock2")
        equal(w.acquire(blocking=False), False)
        ra.release()
        rb.release()
        assert w.acquire(timeout=10)
        w.release()


@check
def semaphore():
    with Client() as a, Client() as b, Client() as c:
        sems = [z.Semaphore("/k/sem", max_leases=2) for z in (a, b, c)]
        assert sems[0].acquire() and sems[1].acquire()
        equal(sems[2].acquire(blocking=False), False)
        sems[0].release()
        assert sems[2].acquire(timeout=10)


@check
def election():
    led = []
    with Client() as a, Client() as b:
        ready, leave = threading.Event(), threading.Event()

        def first():
            led.append("a")
            ready.set()
            leave.wait(30)

        ea, eb = a.Election("/k/election", "a"), b.Election("/k/election", "b")
        ta = threading.Thread(target=ea.run, args=(first,))
        ta.start()
        assert ready.wait(15)
        tb = threading.Thread(target=eb.run, args=(lambda: led.append("b"),))
        tb.start()
        eventually(lambda: ea.contenders() == ["a", "b"], what="both contend")
        equal(led, ["a"])
        leave.set()
        ta.join(15)
        tb.join(15)
        equal(led, ["a", "b"])


@check
def barriers():
    with Client() as a, Client() as b:
        barrier = a.Barrier("/k/barrier")
        barrier.create()
        equal(b.Barrier("/k/barrier").wait(timeout=0.2), False)
        waiting = threading.Event()
        passed = []

        def wait():
            waiting.set()
            passed.append(b.Barrier("/k/barrier").wait(timeout=15))

        t = threading.Thread(target=wait)
        t.start()
        waiting.wait(5)
        barrier.remove()
        t.join(20)
        equal(passed, [True])

        order = []

        def both(zk, name):
            double = zk.DoubleBarrier("/k/double", 2, name)
            double.enter()
            order.append("in")
            double.leave()
            order.append("out")

        threads = [threading.Thread(target=both, args=(z, n)) for z, n in ((a, "a"), (b, "b"))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30)
        equal(sorted(order), ["in", "in", "out", "out"])


@check
def queues():
    with Client() as zk, Client() as other:
        q = zk.Queue("/k/queue")
        for i in range(20):
            q.put(b"%d" % i, priority=100 if i % 2 else 50)
        equal(len(q), 20)
        got = [int(other.Queue("/k/queue").get()) for _ in range(20)]
        equal(got, list(range(0, 20, 2)) + list(range(1, 20, 2)), "priority, then age")
        equal(q.get(), None)
        lq = zk.LockingQueue("/k/lqueue")
        lq.put_all([b"a", b"b"])
        equal(lq.get(timeout=10), b"a")
        assert lq.consume()
        equal(other.LockingQueue("/k/lqueue").get(timeout=10), b"b")


@check
def counter_and_party():
    with Client() as a, Client() as b:
        counters = [z.Counter("/k/counter") for z in (a, b)]

        def add(counter):
            for _ in range(25):
                counter += 1

        threads = [threading.Thread(target=add, args=(c,)) for c in counters]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30)
        equal(a.Counter("/k/counter").value, 50)
        pa, pb = a.Party("/k/party", "a"), b.Party("/k/party", "b")
        pa.join()
        pb.join()
        equal(sorted(pa), ["a", "b"])
        pb.leave()
        eventually(lambda: list(pa) == ["a"], what="one left the party")


@check
def partitioner():
    with Client() as a, Client() as b:
        parts = [
            zk.SetPartitioner("/k/part", set=tuple(range(6)), identifier=name, time_boundary=0.2)
            for zk, name in ((a, "a"), (b, "b"))
        ]

        def settled():
            for p in parts:
                if p.release:
                    p.release_set()
                elif p.allocating:
                    p.wait_for_acquire(1)
            return all(p.acquired for p in parts) and sorted(x for p in parts for x in p) == list(range(6))

        eventually(settled, 30, "the set is split")
        for p in parts:
            p.finish()


@check
def tree_cache():
    with Client() as zk, Client() as other:
        zk.ensure_path("/k/cache")
        cache = TreeCache(zk, "/k/cache")
        cache.start()
        other.create("/k/cache/a/b", b"1", makepath=True)
        eventually(lambda: (cache.get_data("/k/cache/a/b") or (0, b""))[1] == b"1", what="cached")
        other.set("/k/cache/a/b", b"2")
        eventually(lambda: cache.get_data("/k/cache/a/b").data == b"2", what="updated")
        other.delete("/k/cache/a", recursive=True)
        eventually(lambda: cache.get_children("/k/cache") == frozenset(), what="emptied")
        cache.close()


@check
def patient_children_watch():
    with Client() as zk:
        zk.ensure_path("/k/patient")
        zk.create("/k/patient/a", b"")
        result = PatientChildrenWatch(zk, "/k/patient", time_boundary=0.1).start()
        names, changed = result.get(timeout=15)
        equal(names, ["a"])
        zk.create("/k/patient/b", b"")
        changed.get(timeout=15)


@check
def many_sessions():
    clients = [KazooClient(hosts=address, timeout=TIMEOUT) for _ in range(40)]
    try:
        for c in clients:
            c.start(timeout=30)
        ids = {c.client_id[0] for c in clients}
        equal(len(ids), len(clients), "distinct session ids")
        assert all(i not in (0, -1) for i in ids)
        clients[0].ensure_path("/k/many-sessions")
        for i, c in enumerate(clients):
            c.create("/k/many-sessions/%d" % i, b"", ephemeral=True)
        call("cut")
        for i, c in enumerate(clients):
            owner = c.retry(c.exists, "/k/many-sessions/%d" % i).ephemeralOwner
            equal(owner, c.client_id[0], "owner after reconnect")
        equal({c.client_id[0] for c in clients}, ids, "session ids after reconnect")
    finally:
        for c in clients:
            c.stop()
            c.close()
    with Client() as zk:
        equal(zk.get_children("/k/many-sessions"), [])


run()
