import static org.apache.zookeeper.AddWatchMode.PERSISTENT;
import static org.apache.zookeeper.AddWatchMode.PERSISTENT_RECURSIVE;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.OpCode;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** The Java client library of ZooKeeper 3.9 at work: every operation of its API. */
public final class JavaClient {
    private static final int TIMEOUT_MS = 9000;
    private static String address;

    private JavaClient() {
    }

    /** A connected session that follows its own state. */
    static final class Client extends ZooKeeper {
        private final Session session;

        private static final class Session implements Watcher {
            final List<Event.KeeperState> states = Collections.synchronizedList(new ArrayList<>());
            final List<String> events = Collections.synchronizedList(new ArrayList<>());

            @Override
            public void process(WatchedEvent event) {
                if (event.getType() == Event.EventType.None) {
                    states.add(event.getState());
                } else {
                    events.add(event.getType() + " " + event.getPath());
                }
            }
        }

        Client() throws Exception {
            this(address, TIMEOUT_MS);
        }

        Client(String hosts, int timeoutMs) throws Exception {
            this(hosts, timeoutMs, new Session());
        }

        private Client(String hosts, int timeoutMs, Session session) throws Exception {
            super(hosts, timeoutMs, session);
            this.session = session;
            Report.eventually("connected", () -> states().contains(Watcher.Event.KeeperState.SyncConnected));
        }

        List<Watcher.Event.KeeperState> states() {
            synchronized (session.states) {
                return new ArrayList<>(session.states);
            }
        }

        String make(String path) throws Exception {
            return create(path, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }

        String text(String path) throws Exception {
            return new String(getData(path, false, null), StandardCharsets.UTF_8);
        }
    }

    /** A watcher that keeps the events of nodes. */
    static final class Events implements Watcher {
        private final List<String> seen = new ArrayList<>();

        @Override
        public synchronized void process(WatchedEvent event) {
            if (event.getType() != Event.EventType.None) {
                seen.add(event.getType() + " " + event.getPath());
                notifyAll();
            }
        }

        synchronized void expect(String... want) throws Exception {
            long end = System.currentTimeMillis() + 20_000;
            while (seen.size() < want.length && System.currentTimeMillis() < end) {
                wait(100);
            }
            Report.equal(seen, Arrays.asList(want), "events");
        }
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static void refused(Code code, Report.Body body) throws Exception {
        try {
            body.run();
        } catch (KeeperException e) {
            Report.equal(e.code(), code, "error code");
            return;
        }
        throw new AssertionError("not refused with " + code);
    }

    private static Stat exists(ZooKeeper zk, String path) throws Exception {
        return zk.exists(path, false);
    }

    private static void handshake() throws Exception {
        try (Client zk = new Client(); Client shortest = new Client(address, 500); Client longest = new Client(address, 3_600_000)) {
            Report.isTrue(zk.getSessionId() != 0 && zk.getSessionId() != -1, "a session id");
            Report.equal(zk.getSessionPasswd().length, 16, "bytes of the password");
            Report.equal(zk.getSessionTimeout(), TIMEOUT_MS, "timeout as asked");
            Report.equal(shortest.getSessionTimeout(), 1000, "raised to 2 ticks");
            Report.equal(longest.getSessionTimeout(), 10000, "lowered to 20 ticks");
        }
    }

    private static void basics() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j");
            Report.equal(zk.create("/j/a", bytes("one"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), "/j/a", "path");
            Stat created = new Stat();
            Report.equal(zk.create("/j/b", bytes("12"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, created), "/j/b", "path");
            Report.equal(created, exists(zk, "/j/b"), "stat of create2");
            Stat read = new Stat();
            Report.equal(new String(zk.getData("/j/a", false, read), StandardCharsets.UTF_8), "one", "data");
            Report.equal(read.getCzxid(), read.getMzxid(), "mzxid");
            Report.equal(read.getCzxid(), read.getPzxid(), "pzxid");
            Report.isTrue(Math.abs(System.currentTimeMillis() - read.getCtime()) < 60_000, "ctime in milliseconds");
            Stat changed = zk.setData("/j/a", bytes("three"), 0);
            Report.equal(List.of(changed.getVersion(), changed.getDataLength(), changed.getAversion()), List.of(1, 5, 0), "stat");
            refused(Code.BADVERSION, () -> zk.setData("/j/a", bytes(""), 0));
            refused(Code.BADVERSION, () -> zk.delete("/j/a", 5));
            refused(Code.NODEEXISTS, () -> zk.make("/j/a"));
            refused(Code.NONODE, () -> zk.make("/j/none/a"));
            refused(Code.NONODE, () -> zk.getData("/j/none", false, null));
            refused(Code.NONODE, () -> zk.delete("/j/none", -1));
            refused(Code.NONODE, () -> zk.getChildren("/j/none", false));
            refused(Code.NONODE, () -> zk.setData("/j/none", bytes(""), -1));
            refused(Code.BADARGUMENTS, () -> zk.delete("/zookeeper", -1));
            refused(Code.NODEEXISTS, () -> zk.make("/zookeeper"));
            Report.equal(exists(zk, "/j/none"), null, "stat of a missing node");
            zk.make("/j/a/c");
            refused(Code.NOTEMPTY, () -> zk.delete("/j/a", -1));
            zk.delete("/j/a/c", 0);
            zk.delete("/j/a", 1);
            zk.create("/j/null", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            Report.equal(zk.getData("/j/null", false, null), null, "null data");
            zk.setData("/j/null", new byte[0], -1);
            Report.equal(zk.getData("/j/null", false, null).length, 0, "empty data");
            zk.sync("/j");
        }
    }

    private static void modes() throws Exception {
        try (Client zk = new Client(); Client other = new Client()) {
            zk.make("/j-modes");
            Report.equal(zk.create("/j-modes/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL),
                "/j-modes/s-0000000000", "sequential");
            zk.create("/j-modes/e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            Report.equal(zk.create("/j-modes/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                "/j-modes/s-0000000002", "ephemeral sequential");
            Report.equal(exists(other, "/j-modes/e").getEphemeralOwner(), zk.getSessionId(), "owner");
            refused(Code.NOCHILDRENFOREPHEMERALS, () -> zk.make("/j-modes/e/c"));
            Report.equal(new HashSet<>(zk.getEphemerals()), Set.of("/j-modes/e", "/j-modes/s-0000000002"), "getEphemerals");
            Report.equal(zk.getEphemerals("/j-modes/s"), List.of("/j-modes/s-0000000002"), "getEphemerals with a prefix");
            Report.equal(other.getEphemerals(), List.of(), "getEphemerals of another session");
            Report.equal(zk.getAllChildrenNumber("/j-modes"), 3, "getAllChildrenNumber");
            zk.close();
            Report.equal(other.getChildren("/j-modes", false), List.of("s-0000000000"), "after close");
        }
    }

    private static void containers() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-box");
            Stat stat = new Stat();
            zk.create("/j-box/c", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
            zk.create("/j-box/d", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER, stat);
            Report.equal(stat, exists(zk, "/j-box/d"), "stat of a container");
            Report.equal(stat.getEphemeralOwner(), 0L, "owner shown for a container");
            zk.make("/j-box/c/x");
            Events gone = new Events();
            zk.exists("/j-box/c", gone);
            zk.delete("/j-box/c/x", -1);
            gone.expect("NodeDeleted /j-box/c");
            Thread.sleep(1200); // more than two rounds of the reaper
            Report.isTrue(exists(zk, "/j-box/d") != null, "a container that never had a child stays");
        }
    }

    private static void ttl() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-ttl");
            Stat stat = new Stat();
            Events gone = new Events();
            zk.create("/j-ttl/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 700);
            zk.exists("/j-ttl/t", gone);
            Report.equal(stat.getEphemeralOwner(), 0L, "owner shown for a TTL node");
            Report.equal(zk.create("/j-ttl/t-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, stat, 3_600_000),
                "/j-ttl/t-0000000001", "path");
            zk.create("/j-ttl/parent", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 700);
            zk.make("/j-ttl/parent/child");
            gone.expect("NodeDeleted /j-ttl/t");
            Report.isTrue(System.currentTimeMillis() - stat.getCtime() >= 700, "not before its time");
            Thread.sleep(800);
            Report.isTrue(exists(zk, "/j-ttl/parent") != null, "a TTL node with a child stays");
            Report.isTrue(exists(zk, "/j-ttl/t-0000000001") != null, "a TTL of an hour");
            zk.delete("/j-ttl/parent/child", -1);
            Report.eventually("the emptied TTL node goes", () -> exists(zk, "/j-ttl/parent") == null);
        }
    }

    private static void children() throws Exception {
        final int count = 10_000;
        try (Client zk = new Client()) {
            zk.make("/j-many");
            AtomicInteger failed = new AtomicInteger();
            CountDownLatch done = new CountDownLatch(count);
            Set<String> want = new HashSet<>();
            for (int i = 0; i < count; i++) {
                String name = String.format("child-with-a-long-name-to-fill-the-reply-%08d", i);
                want.add(name);
                zk.create("/j-many/" + name, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT,
                    (AsyncCallback.StringCallback) (rc, path, ctx, created) -> {
                        if (rc != 0 || !path.equals(created)) {
                            failed.incrementAndGet();
                        }
                        done.countDown();
                    }, null);
            }
            Report.isTrue(done.await(60, TimeUnit.SECONDS), "all answered");
            Report.equal(failed.get(), 0, "failed creates");
            Stat stat = new Stat();
            Report.equal(new HashSet<>(zk.getChildren("/j-many", false, stat)), want, "children");
            Report.equal(List.of(stat.getNumChildren(), stat.getCversion()), List.of(count, count), "stat");
            Report.equal(zk.getAllChildrenNumber("/j-many"), count, "getAllChildrenNumber");
        }
    }

    private static void unicode() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-unicode");
            List<String> names = List.of("grüße", "日本語", "кириллица", "with space", "...x", "a..b", "\u00a0");
            for (String name : names) {
                Report.equal(zk.create("/j-unicode/" + name, bytes(name), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                    "/j-unicode/" + name, "path");
                Report.equal(zk.text("/j-unicode/" + name), name, "data");
            }
            Report.equal(new HashSet<>(zk.getChildren("/j-unicode", false)), new HashSet<>(names), "names");
        }
    }

    private static void oneShotWatches() throws Exception {
        try (Client zk = new Client(); Client other = new Client()) {
            zk.make("/j-watch");
            Events exist = new Events();
            Events data = new Events();
            Events child = new Events();
            Events both = new Events();
            zk.exists("/j-watch/n", exist);
            zk.getChildren("/j-watch", child);
            other.make("/j-watch/n");
            exist.expect("NodeCreated /j-watch/n");
            child.expect("NodeChildrenChanged /j-watch");
            zk.getData("/j-watch/n", data, null);
            other.setData("/j-watch/n", bytes("1"), -1);
            other.setData("/j-watch/n", bytes("2"), -1);
            data.expect("NodeDataChanged /j-watch/n");
            zk.getData("/j-watch/n", both, null);
            zk.getChildren("/j-watch/n", both);
            other.delete("/j-watch/n", -1);
            // Registered for data and children with one watcher object: told once.
            both.expect("NodeDeleted /j-watch/n");
            exists(zk, "/j-watch");
            for (Events events : List.of(exist, data, child, both)) {
                Report.equal(events.seen.size(), 1, "events of a one-shot watch");
            }
            zk.exists("/j-watch", true);
            other.setData("/j-watch", bytes("x"), -1);
            Report.eventually("the default watcher", () -> zk.session.events.equals(List.of("NodeDataChanged /j-watch")));
        }
    }

    private static void persistentWatches() throws Exception {
        try (Client zk = new Client(); Client other = new Client()) {
            other.make("/j-pw");
            Events plain = new Events();
            Events deep = new Events();
            zk.addWatch("/j-pw", plain, PERSISTENT);
            zk.addWatch("/j-pw", deep, PERSISTENT_RECURSIVE);
            other.make("/j-pw/b");
            other.make("/j-pw/b/c");
            other.setData("/j-pw/b/c", bytes("1"), -1);
            other.setData("/j-pw", bytes("1"), -1);
            other.delete("/j-pw/b/c", -1);
            other.delete("/j-pw/b", -1);
            other.setData("/j-pw", bytes("2"), -1);
            deep.expect("NodeCreated /j-pw/b", "NodeCreated /j-pw/b/c", "NodeDataChanged /j-pw/b/c", "NodeDataChanged /j-pw",
                "NodeDeleted /j-pw/b/c", "NodeDeleted /j-pw/b", "NodeDataChanged /j-pw");
            plain.expect("NodeChildrenChanged /j-pw", "NodeDataChanged /j-pw", "NodeChildrenChanged /j-pw", "NodeDataChanged /j-pw");
        }
    }

    private static void persistentWatchesAfterReconnect() throws Exception {
        try (Client zk = new Client(); Client other = new Client()) {
            other.make("/j-pwr");
            other.make("/j-pwr/old");
            Events plain = new Events();
            Events deep = new Events();
            Events data = new Events();
            zk.addWatch("/j-pwr", plain, PERSISTENT);
            zk.addWatch("/j-pwr", deep, PERSISTENT_RECURSIVE);
            zk.getData("/j-pwr/old", data, null);
            int states = zk.states().size();
            Report.call("cut");
            Report.eventually("both connected again", () -> zk.states().size() >= states + 2
                && zk.getState() == ZooKeeper.States.CONNECTED && other.getState() == ZooKeeper.States.CONNECTED);
            exists(zk, "/j-pwr"); // behind setWatches2
            other.make("/j-pwr/new");
            other.setData("/j-pwr/old", bytes("1"), -1);
            deep.expect("NodeCreated /j-pwr/new", "NodeDataChanged /j-pwr/old");
            plain.expect("NodeChildrenChanged /j-pwr");
            data.expect("NodeDataChanged /j-pwr/old");
        }
    }

    private static void removeWatches() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-rw");
            Events data = new Events();
            Events child = new Events();
            Events deep = new Events();
            zk.getData("/j-rw", data, null);
            zk.getChildren("/j-rw", child);
            zk.addWatch("/j-rw", deep, PERSISTENT_RECURSIVE);
            zk.removeWatches("/j-rw", data, Watcher.WatcherType.Data, false);
            data.expect("DataWatchRemoved /j-rw");
            zk.removeWatches("/j-rw", child, Watcher.WatcherType.Children, false);
            child.expect("ChildWatchRemoved /j-rw");
            refused(Code.NOWATCHER, () -> zk.removeWatches("/j-rw", data, Watcher.WatcherType.Data, false));
            zk.setData("/j-rw", bytes("1"), -1);
            zk.make("/j-rw/c");
            deep.expect("NodeDataChanged /j-rw", "NodeCreated /j-rw/c");
            zk.removeWatches("/j-rw", deep, Watcher.WatcherType.PersistentRecursive, false);
            deep.expect("NodeDataChanged /j-rw", "NodeCreated /j-rw/c", "PersistentWatchRemoved /j-rw");
            zk.setData("/j-rw", bytes("2"), -1);
            exists(zk, "/j-rw");
            zk.getData("/j-rw", data, null);
            zk.getData("/j-rw", child, null);
            zk.removeAllWatches("/j-rw", Watcher.WatcherType.Any, false);
            data.expect("DataWatchRemoved /j-rw", "DataWatchRemoved /j-rw");
            child.expect("ChildWatchRemoved /j-rw", "DataWatchRemoved /j-rw");
            refused(Code.NOWATCHER, () -> zk.removeAllWatches("/j-rw-none", Watcher.WatcherType.Any, false));
        }
    }

    private static void multi() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-multi");
            List<OpResult> results = zk.multi(List.of(
                Op.create("/j-multi/a", bytes("1"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.create("/j-multi/s-", bytes(""), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL),
                Op.create("/j-multi/box", bytes(""), Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER),
                Op.create("/j-multi/ttl", bytes(""), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 3_600_000),
                Op.setData("/j-multi/a", bytes("22"), 0),
                Op.check("/j-multi/a", 1),
                Op.create("/j-multi/gone", bytes(""), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.delete("/j-multi/gone", 0)));
            Report.equal(results.stream().map(OpResult::getType).toList(), List.of(OpCode.create, OpCode.create,
                OpCode.create2, OpCode.create2, OpCode.setData, OpCode.check, OpCode.create, OpCode.delete), "result types");
            Report.equal(((OpResult.CreateResult) results.get(1)).getPath(), "/j-multi/s-0000000001", "sequential path");
            Report.equal(((OpResult.SetDataResult) results.get(4)).getStat().getVersion(), 1, "version");
            long zxid = exists(zk, "/j-multi/a").getCzxid();
            Report.equal(exists(zk, "/j-multi/ttl").getCzxid(), zxid, "one zxid for all");
            try {
                zk.multi(List.of(Op.create("/j-multi/b", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                    Op.check("/j-multi/a", 9), Op.delete("/j-multi/a", -1)));
                throw new AssertionError("a failing multi succeeded");
            } catch (KeeperException e) {
                Report.equal(e.code(), Code.BADVERSION, "code");
                Report.equal(e.getResults().stream().map(r -> ((OpResult.ErrorResult) r).getErr()).toList(),
                    List.of(0, Code.BADVERSION.intValue(), Code.RUNTIMEINCONSISTENCY.intValue()), "results");
            }
            Report.equal(exists(zk, "/j-multi/b"), null, "rolled back");
            Report.equal(zk.multi(List.of()), List.of(), "an empty multi");
            results = zk.transaction().create("/j-multi/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
                .setData("/j-multi/t", bytes("x"), -1).delete("/j-multi/t", 1).commit();
            Report.equal(results.size(), 3, "results of a transaction");
        }
    }

    private static void multiRead() throws Exception {
        try (Client zk = new Client()) {
            zk.make("/j-mr");
            zk.make("/j-mr/c");
            zk.setData("/j-mr", bytes("data"), -1);
            List<OpResult> results = zk.multi(List.of(Op.getData("/j-mr"), Op.getChildren("/j-mr"), Op.getData("/j-mr/none")));
            OpResult.GetDataResult data = (OpResult.GetDataResult) results.get(0);
            Report.equal(new String(data.getData(), StandardCharsets.UTF_8), "data", "data");
            Report.equal(data.getStat(), exists(zk, "/j-mr"), "stat");
            Report.equal(((OpResult.GetChildrenResult) results.get(1)).getChildren(), List.of("c"), "children");
            Report.equal(((OpResult.ErrorResult) results.get(2)).getErr(), Code.NONODE.intValue(), "error of one read");
        }
    }

    private static void acls() throws Exception {
        try (Client zk = new Client(); Client other = new Client()) {
            zk.make("/j-acl");
            zk.addAuthInfo("digest", bytes("bob:secret"));
            Id bob = new Id("digest", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=");
            zk.create("/j-acl/mine", bytes("p"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            Stat stat = new Stat();
            Report.equal(zk.getACL("/j-acl/mine", stat), List.of(new ACL(Perms.ALL, bob)), "auth is expanded");
            refused(Code.NOAUTH, () -> other.getData("/j-acl/mine", false, null));
            refused(Code.NOAUTH, () -> other.exists("/j-acl/mine", false));
            refused(Code.NOAUTH, () -> other.getChildren("/j-acl/mine", false));
            refused(Code.NOAUTH, () -> other.setData("/j-acl/mine", bytes(""), -1));
            refused(Code.NOAUTH, () -> other.make("/j-acl/mine/c"));
            refused(Code.NOAUTH, () -> other.getACL("/j-acl/mine", new Stat()));
            refused(Code.NOAUTH, () -> other.setACL("/j-acl/mine", Ids.OPEN_ACL_UNSAFE, -1));
            List<ACL> acl = Arrays.asList(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE), new ACL(Perms.WRITE, new Id("ip", "127.0.0.0/8")),
                new ACL(Perms.ALL, bob));
            Report.equal(zk.setACL("/j-acl/mine", acl, 0).getAversion(), 1, "aversion");
            refused(Code.BADVERSION, () -> zk.setACL("/j-acl/mine", acl, 0));
            other.setData("/j-acl/mine", bytes("by address"), -1);
            Report.equal(other.getACL("/j-acl/mine", new Stat()).get(2).getId().getId(), "bob:x", "hash hidden");
            Report.equal(zk.getACL("/j-acl/mine", new Stat()), acl, "hash shown to ADMIN");
            refused(Code.INVALIDACL, () -> zk.create("/j-acl/bad", null, Collections.singletonList(new ACL(31, new Id("nope", "x"))), CreateMode.PERSISTENT));
            refused(Code.INVALIDACL, () -> other.create("/j-acl/bad", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
            Report.equal(other.whoAmI(), List.of(new ClientInfo("ip", "127.0.0.1")), "whoAmI");
            Report.equal(new HashSet<>(zk.whoAmI()), Set.of(new ClientInfo("ip", "127.0.0.1"), new ClientInfo("digest", "bob")), "whoAmI");
        }
    }

    private static void authFailure() throws Exception {
        Client zk = new Client();
        zk.addAuthInfo("no-such-scheme", bytes("x"));
        Report.eventually("auth failed", () -> zk.getState() == ZooKeeper.States.AUTH_FAILED);
        refused(Code.AUTHFAILED, () -> zk.exists("/", false));
        zk.close();
    }

    private static void reconfigRefused() throws Exception {
        ZooKeeperAdmin admin = new ZooKeeperAdmin(address, TIMEOUT_MS, event -> { });
        try {
            admin.addAuthInfo("digest", bytes("super:test"));
            String config = new String(admin.getConfig(false, new Stat()), StandardCharsets.UTF_8);
            if (System.getenv("INTEROP_ENSEMBLE") == null) {
                Report.equal(config, "", "config of a standalone server");
            } else {
                Report.isTrue(config.matches("(server\\.\\d=127\\.0\\.0\\.1:\\d+:\\d+:participant\n){3}version=0"), "config: " + config);
            }
            try {
                admin.reconfigure("server.9=127.0.0.1:1:2:participant;127.0.0.1:3", null, null, -1, null);
                throw new AssertionError("reconfig was accepted");
            } catch (KeeperException e) {
                Report.equal(e.code(), Code.RECONFIGDISABLED, "code");
            }
            Report.isTrue(exists(admin, "/") != null, "the session lives on");
        } finally {
            admin.close();
        }
    }

    private static void sessionSurvives(String how) throws Exception {
        String base = "/j-" + how;
        long session;
        try (Client zk = new Client()) {
            zk.make(base);
            Stat before = new Stat();
            zk.create(base + "/e", bytes("mine"), Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL, before);
            Events watch = new Events();
            Events deep = new Events();
            zk.getData(base, watch, null);
            zk.addWatch(base, deep, PERSISTENT_RECURSIVE);
            session = zk.getSessionId();
            int states = zk.states().size();
            Report.call(how);
            Report.eventually("connected again", () -> zk.states().size() >= states + 2 && zk.getState() == ZooKeeper.States.CONNECTED);
            Report.equal(zk.states().subList(states, states + 2),
                List.of(Watcher.Event.KeeperState.Disconnected, Watcher.Event.KeeperState.SyncConnected), "states");
            Report.equal(zk.getSessionId(), session, "session id");
            Report.equal(exists(zk, base + "/e"), before, "stat of the ephemeral");
            Report.equal(zk.getEphemerals(), List.of(base + "/e"), "ephemerals");
            Report.equal(zk.create(base + "/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL), base + "/s-0000000001", "counter");
            zk.setData(base, bytes("x"), 0);
            watch.expect("NodeDataChanged " + base);
            deep.expect("NodeCreated " + base + "/s-0000000001", "NodeDataChanged " + base);
        }
        try (Client zk = new Client()) {
            Report.equal(zk.getChildren(base, false), List.of("s-0000000001"), "after close");
            Report.isTrue(zk.getSessionId() != session, "another session");
        }
    }

    private static void takeOver() throws Exception {
        try (Client first = new Client()) {
            first.make("/j-take");
            first.create("/j-take/e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            ZooKeeper second = new ZooKeeper(address, TIMEOUT_MS, event -> { }, first.getSessionId(), first.getSessionPasswd());
            Report.eventually("taken over", () -> second.getState() == ZooKeeper.States.CONNECTED);
            Report.equal(exists(second, "/j-take/e").getEphemeralOwner(), first.getSessionId(), "owner");
            second.close();
        }
        ZooKeeper wrong;
        try (Client zk = new Client()) {
            CountDownLatch expired = new CountDownLatch(1);
            wrong = new ZooKeeper(address, TIMEOUT_MS, event -> {
                if (event.getState() == Watcher.Event.KeeperState.Expired) {
                    expired.countDown();
                }
            }, zk.getSessionId(), new byte[16]);
            Report.isTrue(expired.await(20, TimeUnit.SECONDS), "a wrong password is told as expired");
            wrong.close();
        }
    }

    private static void ordering() throws Exception {
        final int count = 3000;
        try (Client zk = new Client()) {
            zk.make("/j-order");
            List<String> answers = Collections.synchronizedList(new ArrayList<>());
            CountDownLatch done = new CountDownLatch(2 * count);
            for (int i = 0; i < count; i++) {
                zk.setData("/j-order", bytes(Integer.toString(i)), i, (rc, path, ctx, stat) -> {
                    answers.add("set " + rc + " " + (stat == null ? "" : stat.getVersion()));
                    done.countDown();
                }, null);
                zk.getData("/j-order", false, (rc, path, ctx, data, stat) -> {
                    answers.add("get " + rc + " " + new String(data, StandardCharsets.UTF_8) + " " + stat.getVersion());
                    done.countDown();
                }, null);
            }
            Report.isTrue(done.await(60, TimeUnit.SECONDS), "all answered");
            for (int i = 0; i < count; i++) {
                Report.equal(answers.get(2 * i), "set 0 " + (i + 1), "answer");
                Report.equal(answers.get(2 * i + 1), "get 0 " + i + " " + (i + 1), "read your write");
            }
        }
    }

    private static void chroot() throws Exception {
        try (Client plain = new Client()) {
            plain.make("/j-root");
            try (Client zk = new Client(address + "/j-root", TIMEOUT_MS)) {
                Events deep = new Events();
                zk.addWatch("/", deep, PERSISTENT_RECURSIVE);
                Report.equal(zk.create("/x-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL), "/x-0000000000", "path");
                deep.expect("NodeCreated /x-0000000000");
                Report.equal(plain.getChildren("/j-root", false), List.of("x-0000000000"), "children");
            }
        }
    }

    public static void main(String[] args) {
        address = args[0];
        Report.check("session-handshake", JavaClient::handshake);
        Report.check("create-get-set-delete", JavaClient::basics);
        Report.check("modes-and-ephemerals", JavaClient::modes);
        Report.check("containers", JavaClient::containers);
        Report.check("ttl-nodes", JavaClient::ttl);
        Report.check("big-list-of-children", JavaClient::children);
        Report.check("unicode-names", JavaClient::unicode);
        Report.check("one-shot-watches", JavaClient::oneShotWatches);
        Report.check("persistent-watches", JavaClient::persistentWatches);
        Report.check("persistent-watches-after-reconnect", JavaClient::persistentWatchesAfterReconnect);
        Report.check("remove-watches", JavaClient::removeWatches);
        Report.check("multi", JavaClient::multi);
        Report.check("multi-read", JavaClient::multiRead);
        Report.check("acls-auth-whoami", JavaClient::acls);
        Report.check("auth-failure", JavaClient::authFailure);
        Report.check("reconfig-is-refused", JavaClient::reconfigRefused);
        Report.check("session-survives-restart", () -> sessionSurvives("restart"));
        Report.check("session-survives-kill", () -> sessionSurvives("kill"));
        Report.check("session-taken-over", JavaClient::takeOver);
        Report.check("pipelined-order", JavaClient::ordering);
        Report.check("chroot", JavaClient::chroot);
        Report.runAll(JavaClient.class);
    }
}
