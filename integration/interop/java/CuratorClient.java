import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Curator's framework and recipes at work. With "worker" as first argument: one of the processes that contend for a mutex. */
public final class CuratorClient {
    private static String address;

    private CuratorClient() {
    }

    private static CuratorFramework open() throws Exception {
        return open(address);
    }

    private static CuratorFramework open(String hosts) throws Exception {
        CuratorFramework curator = CuratorFrameworkFactory.builder().connectString(hosts).sessionTimeoutMs(9000)
            .connectionTimeoutMs(5000).retryPolicy(new RetryForever(50)).build();
        curator.start();
        Report.isTrue(curator.blockUntilConnected(30, TimeUnit.SECONDS), "connected");
        return curator;
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(CuratorFramework curator, String path) throws Exception {
        return new String(curator.getData().forPath(path), StandardCharsets.UTF_8);
    }

    private static boolean exists(CuratorFramework curator, String path) throws Exception {
        return curator.checkExists().forPath(path) != null;
    }

    /** Adds one to a counter that only the holder of the mutex may touch, the given number of times. */
    private static void increment(CuratorFramework curator, String lock, String counter, int rounds) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(curator, lock);
        for (int i = 0; i < rounds; i++) {
            Report.isTrue(mutex.acquire(60, TimeUnit.SECONDS), "the mutex within a minute");
            try {
                long value = Long.parseLong(text(curator, counter));
                curator.setData().forPath(counter, bytes(Long.toString(value + 1)));
            } finally {
                mutex.release();
            }
        }
    }

    private static void framework() throws Exception {
        try (CuratorFramework curator = open()) {
            Stat stat = new Stat();
            Report.equal(curator.create().orSetData().creatingParentsIfNeeded().forPath("/q/a/b", bytes("1")), "/q/a/b", "path");
            curator.create().orSetData().forPath("/q/a/b", bytes("2"));
            Report.equal(new String(curator.getData().storingStatIn(stat).forPath("/q/a/b"), StandardCharsets.UTF_8), "2", "data");
            Report.equal(stat.getVersion(), 1, "version");
            curator.create().idempotent().forPath("/q/idem", bytes("x"));
            curator.setData().idempotent().withVersion(0).forPath("/q/idem", bytes("y"));
            String seq = curator.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/q/p-");
            Report.isTrue(seq.matches("/q/_c_[-0-9a-f]{36}-p-0000000002"), "protected name: " + seq);
            Report.isTrue(curator.create().withTtl(3_600_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/q/ttl").equals("/q/ttl"), "ttl");
            Collection<CuratorTransactionResult> results = curator.transaction().forOperations(
                curator.transactionOp().create().forPath("/q/t", bytes("1")),
                curator.transactionOp().setData().withVersion(0).forPath("/q/t", bytes("2")),
                curator.transactionOp().check().withVersion(1).forPath("/q/t"),
                curator.transactionOp().delete().forPath("/q/t"));
            Report.equal(results.stream().map(r -> r.getType().name()).toList(), List.of("CREATE", "SET_DATA", "CHECK", "DELETE"), "results");
            try {
                curator.transaction().forOperations(curator.transactionOp().create().forPath("/q/u"), curator.transactionOp().delete().forPath("/q/none"));
                throw new AssertionError("a failing transaction succeeded");
            } catch (KeeperException.NoNodeException e) {
                Report.isTrue(!exists(curator, "/q/u"), "rolled back");
            }
            curator.delete().guaranteed().deletingChildrenIfNeeded().forPath("/q/a");
            Report.isTrue(!exists(curator, "/q/a"), "deleted with its children");
            CountDownLatch answered = new CountDownLatch(1);
            curator.getChildren().inBackground((c, event) -> answered.countDown()).forPath("/q");
            Report.isTrue(answered.await(10, TimeUnit.SECONDS), "an answer in the background");
            curator.sync().forPath("/q");
        }
    }

    private static void createdContainers() throws Exception {
        try (CuratorFramework curator = open()) {
            curator.create().creatingParentContainersIfNeeded().forPath("/q-box/inner/x");
            Report.equal(curator.checkExists().forPath("/q-box/inner").getEphemeralOwner(), 0L, "owner shown");
            curator.delete().forPath("/q-box/inner/x");
            Report.eventually("the emptied containers go", () -> !exists(curator, "/q-box"));
        }
    }

    private static void mutexOfThreeProcesses() throws Exception {
        final int rounds = 30;
        try (CuratorFramework curator = open()) {
            curator.create().forPath("/q-mutex-count", bytes("0"));
            List<Process> workers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                workers.add(new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-Xmx128m", "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", System.getProperty("java.class.path"),
                    "CuratorClient", "worker", address, "/q-mutex", "/q-mutex-count", Integer.toString(rounds)).start());
            }
            for (Process worker : workers) {
                Report.isTrue(worker.waitFor(90, TimeUnit.SECONDS), "a worker ended");
                if (worker.exitValue() != 0) {
                    throw new AssertionError("worker: " + new String(worker.getErrorStream().readAllBytes(), StandardCharsets.UTF_8));
                }
            }
            Report.equal(text(curator, "/q-mutex-count"), Integer.toString(3 * rounds), "increments under the mutex");
        }
    }

    private static void mutexIsReentrantAndFreedByClose() throws Exception {
        try (CuratorFramework second = open()) {
            InterProcessMutex mine = new InterProcessMutex(second, "/q-mutex2");
            try (CuratorFramework first = open()) {
                InterProcessMutex other = new InterProcessMutex(first, "/q-mutex2");
                other.acquire();
                other.acquire();
                other.release();
                Report.equal(mine.acquire(200, TimeUnit.MILLISECONDS), false, "acquired while held");
                Report.equal(mine.getParticipantNodes().size(), 1, "participants");
            }
            Report.isTrue(mine.acquire(15, TimeUnit.SECONDS), "freed by the end of the holder's session");
            mine.release();
        }
    }

    private static void readWriteLockAndSemaphore() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            InterProcessReadWriteLock la = new InterProcessReadWriteLock(a, "/q-rw");
            InterProcessReadWriteLock lb = new InterProcessReadWriteLock(b, "/q-rw");
            la.readLock().acquire();
            Report.isTrue(lb.readLock().acquire(10, TimeUnit.SECONDS), "readers share");
            Report.equal(lb.writeLock().acquire(200, TimeUnit.MILLISECONDS), false, "a writer beside readers");
            la.readLock().release();
            lb.readLock().release();
            Report.isTrue(lb.writeLock().acquire(10, TimeUnit.SECONDS), "a writer alone");
            lb.writeLock().release();
            InterProcessSemaphoreV2 sa = new InterProcessSemaphoreV2(a, "/q-sem", 2);
            InterProcessSemaphoreV2 sb = new InterProcessSemaphoreV2(b, "/q-sem", 2);
            Collection<Lease> two = sa.acquire(2);
            Report.equal(sb.acquire(200, TimeUnit.MILLISECONDS), null, "a third lease");
            sa.returnAll(two);
            Lease lease = sb.acquire(10, TimeUnit.SECONDS);
            Report.isTrue(lease != null, "a lease");
            sb.returnLease(lease);
        }
    }

    private static void leaderLatch() throws Exception {
        CuratorFramework a = open();
        try (CuratorFramework b = open()) {
            LeaderLatch first = new LeaderLatch(a, "/q-latch", "first");
            LeaderLatch second = new LeaderLatch(b, "/q-latch", "second");
            first.start();
            Report.isTrue(first.await(15, TimeUnit.SECONDS), "the first leads");
            second.start();
            Report.eventually("two participants", () -> second.getParticipants().size() == 2);
            Report.equal(second.getLeader().getId(), "first", "leader");
            Report.equal(second.hasLeadership(), false, "the second leads");
            a.close(); // not the latch: its node goes with the session
            Report.isTrue(second.await(15, TimeUnit.SECONDS), "the second takes over");
            second.close();
        }
        try (CuratorFramework c = open()) {
            CountDownLatch led = new CountDownLatch(2);
            LeaderSelector selector = new LeaderSelector(c, "/q-selector", new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) {
                    led.countDown();
                }
            });
            selector.autoRequeue();
            selector.start();
            Report.isTrue(led.await(20, TimeUnit.SECONDS), "selected again and again");
            selector.close();
        }
    }

    private static void curatorCache() throws Exception {
        try (CuratorFramework curator = open(); CuratorFramework other = open()) {
            other.create().creatingParentsIfNeeded().forPath("/q-cache/old", bytes("0"));
            List<String> events = Collections.synchronizedList(new ArrayList<>());
            CountDownLatch ready = new CountDownLatch(1);
            CuratorCache cache = CuratorCache.build(curator, "/q-cache");
            cache.listenable().addListener(CuratorCacheListener.builder()
                .forCreates(node -> events.add("created " + node.getPath()))
                .forChanges((before, node) -> events.add("changed " + node.getPath() + " " + new String(node.getData(), StandardCharsets.UTF_8)))
                .forDeletes(node -> events.add("deleted " + node.getPath()))
                .forInitialized(ready::countDown).build());
            cache.start();
            Report.isTrue(ready.await(20, TimeUnit.SECONDS), "the cache is filled");
            Report.equal(Set.copyOf(events), Set.of("created /q-cache", "created /q-cache/old"), "first events");
            events.clear();
            other.create().forPath("/q-cache/new", bytes("1"));
            Report.eventually("a create", () -> events.contains("created /q-cache/new"));
            other.setData().forPath("/q-cache/new", bytes("2"));
            Report.eventually("a change", () -> events.contains("changed /q-cache/new 2"));
            other.create().forPath("/q-cache/new/deep", bytes("3"));
            Report.eventually("a grandchild", () -> cache.get("/q-cache/new/deep").isPresent());
            Report.call("cut");
            other.setData().forPath("/q-cache/old", bytes("while away"));
            other.delete().forPath("/q-cache/new/deep");
            other.delete().forPath("/q-cache/new");
            Report.eventually("what happened around the reconnect", () -> cache.get("/q-cache/new").isEmpty()
                && new String(cache.get("/q-cache/old").orElseThrow().getData(), StandardCharsets.UTF_8).equals("while away"));
            Report.equal(cache.size(), 2, "nodes in the cache");
            cache.close();

            TreeCache tree = TreeCache.newBuilder(curator, "/q-cache").build();
            tree.start();
            Report.eventually("the old cache", () -> tree.getCurrentData("/q-cache/old") != null);
            other.create().forPath("/q-cache/more");
            Report.eventually("the old cache follows", () -> tree.getCurrentData("/q-cache/more") != null);
            tree.close();
        }
    }

    private static void persistentWatcher() throws Exception {
        try (CuratorFramework curator = open(); CuratorFramework other = open()) {
            other.create().forPath("/q-pw");
            List<String> events = Collections.synchronizedList(new ArrayList<>());
            PersistentWatcher watcher = new PersistentWatcher(curator, "/q-pw", true);
            CountDownLatch set = new CountDownLatch(1);
            watcher.getResetListenable().addListener(set::countDown);
            watcher.getListenable().addListener(event -> events.add(event.getType() + " " + event.getPath()));
            watcher.start();
            Report.isTrue(set.await(15, TimeUnit.SECONDS), "the watch is set");
            other.create().forPath("/q-pw/a");
            other.setData().forPath("/q-pw/a", bytes("1"));
            other.delete().forPath("/q-pw/a");
            List<String> want = List.of("NodeCreated /q-pw/a", "NodeDataChanged /q-pw/a", "NodeDeleted /q-pw/a");
            Report.eventually("three events", () -> events.size() >= 3);
            Report.equal(events, want, "events");
            watcher.close();
        }
    }

    private static void persistentNode() throws Exception {
        try (CuratorFramework curator = open(); CuratorFramework other = open()) {
            try (PersistentNode node = new PersistentNode(curator, CreateMode.EPHEMERAL, false, "/q-node/me", bytes("here"))) {
                node.start();
                Report.isTrue(node.waitForInitialCreate(15, TimeUnit.SECONDS), "created");
                Report.equal(text(other, "/q-node/me"), "here", "data");
                other.delete().forPath("/q-node/me");
                Report.eventually("made again after a delete", () -> exists(other, "/q-node/me"));
                node.setData(bytes("there"));
                Report.eventually("changed", () -> text(other, "/q-node/me").equals("there"));
                Report.call("restart");
                Report.eventually("still there after a restart", () -> exists(other, "/q-node/me"));
                long session = curator.getZookeeperClient().getZooKeeper().getSessionId();
                Report.eventually("in the same session", () -> other.checkExists().forPath("/q-node/me").getEphemeralOwner() == session);
            }
            Report.eventually("gone when closed", () -> !exists(other, "/q-node/me"));
            try (PersistentTtlNode ttl = new PersistentTtlNode(curator, "/q-ttl", 900, new byte[0])) {
                ttl.start();
                Report.isTrue(ttl.waitForInitialCreate(15, TimeUnit.SECONDS), "created");
                Thread.sleep(2000);
                Report.isTrue(exists(other, "/q-ttl"), "the node is kept alive");
            }
            Report.eventually("reaped afterwards", () -> !exists(other, "/q-ttl"));
        }
    }

    private static void atomicLongAndSharedCount() throws Exception {
        final int threads = 4;
        final int rounds = 25;
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try (CuratorFramework curator = open()) {
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                all.add(pool.submit((Callable<Void>) () -> {
                    try (CuratorFramework own = open()) {
                        DistributedAtomicLong value = new DistributedAtomicLong(own, "/q-long", new RetryForever(2));
                        for (int k = 0; k < rounds; k++) {
                            Report.isTrue(value.increment().succeeded(), "an increment");
                        }
                    }
                    return null;
                }));
            }
            for (Future<Void> one : all) {
                one.get(60, TimeUnit.SECONDS);
            }
            AtomicValue<Long> value = new DistributedAtomicLong(curator, "/q-long", new RetryForever(2)).get();
            Report.equal(value.postValue(), (long) threads * rounds, "sum");
            SharedCount count = new SharedCount(curator, "/q-shared", 5);
            count.start();
            Report.isTrue(count.trySetCount(count.getVersionedValue(), 6), "set");
            Report.equal(count.getCount(), 6, "shared count");
            count.close();
        } finally {
            pool.shutdownNow();
        }
    }

    private static void barriers() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            AtomicInteger inside = new AtomicInteger();
            List<Future<Boolean>> both = new ArrayList<>();
            for (CuratorFramework one : List.of(a, b)) {
                both.add(pool.submit(() -> {
                    DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(one, "/q-double", 2);
                    boolean entered = barrier.enter(30, TimeUnit.SECONDS);
                    inside.incrementAndGet();
                    boolean left = barrier.leave(30, TimeUnit.SECONDS);
                    return entered && left && inside.get() == 2;
                }));
            }
            for (Future<Boolean> one : both) {
                Report.isTrue(one.get(60, TimeUnit.SECONDS), "entered and left together");
            }
            DistributedBarrier barrier = new DistributedBarrier(a, "/q-barrier");
            barrier.setBarrier();
            Report.equal(new DistributedBarrier(b, "/q-barrier").waitOnBarrier(200, TimeUnit.MILLISECONDS), false, "passed a closed barrier");
            barrier.removeBarrier();
            Report.isTrue(new DistributedBarrier(b, "/q-barrier").waitOnBarrier(15, TimeUnit.SECONDS), "passed an open one");
        } finally {
            pool.shutdownNow();
        }
    }

    private static void groupAndDiscovery() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            GroupMember ga = new GroupMember(a, "/q-group", "a", bytes("1"));
            GroupMember gb = new GroupMember(b, "/q-group", "b", bytes("2"));
            ga.start();
            gb.start();
            Report.eventually("two members", () -> ga.getCurrentMembers().keySet().equals(new HashSet<>(List.of("a", "b"))));
            gb.close();
            Report.eventually("one left", () -> ga.getCurrentMembers().keySet().equals(Set.of("a")));
            ga.close();

            ServiceInstance<Void> instance = ServiceInstance.<Void>builder().name("shop").address("127.0.0.1").port(80).build();
            try (ServiceDiscovery<Void> server = ServiceDiscoveryBuilder.builder(Void.class).client(a).basePath("/q-services").thisInstance(instance).build();
                ServiceDiscovery<Void> client = ServiceDiscoveryBuilder.builder(Void.class).client(b).basePath("/q-services").build()) {
                server.start();
                client.start();
                Report.equal(client.queryForInstances("shop").size(), 1, "instances");
                Report.equal(List.copyOf(client.queryForNames()), List.of("shop"), "names");
                ServiceCache<Void> cache = client.serviceCacheBuilder().name("shop").build();
                cache.start();
                Report.eventually("cached", () -> cache.getInstances().size() == 1);
                server.unregisterService(instance);
                Report.eventually("unregistered", () -> cache.getInstances().isEmpty());
                cache.close();
            }
        }
    }

    private static void connectionStates() throws Exception {
        CuratorFramework curator = CuratorFrameworkFactory.builder().connectString(address).sessionTimeoutMs(9000)
            .connectionTimeoutMs(5000).retryPolicy(new RetryForever(50)).build();
        try (curator) {
            List<ConnectionState> states = Collections.synchronizedList(new ArrayList<>());
            curator.getConnectionStateListenable().addListener((c, state) -> states.add(state));
            curator.start();
            Report.eventually("connected", () -> states.contains(ConnectionState.CONNECTED));
            long session = curator.getZookeeperClient().getZooKeeper().getSessionId();
            Report.call("kill");
            Report.eventually("reconnected", () -> states.contains(ConnectionState.RECONNECTED));
            Report.equal(states, List.of(ConnectionState.CONNECTED, ConnectionState.SUSPENDED, ConnectionState.RECONNECTED), "states");
            Report.equal(curator.getZookeeperClient().getZooKeeper().getSessionId(), session, "session");
        }
    }

    private static void work(String[] args) throws Exception {
        if (args[0].equals("worker")) {
            try (CuratorFramework curator = open(args[1])) {
                increment(curator, args[2], args[3], Integer.parseInt(args[4]));
            }
            return;
        }
        // "contend": like worker, but says when it is connected and waits for a line before it begins.
        try (CuratorFramework curator = open(args[1])) {
            System.out.println("READY");
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
            increment(curator, args[2], args[3], Integer.parseInt(args[4]));
            System.out.println("DONE");
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            work(args);
            return;
        }
        address = args[0];
        Report.check("framework", CuratorClient::framework);
        Report.check("containers", CuratorClient::createdContainers);
        Report.check("inter-process-mutex-of-3-processes", CuratorClient::mutexOfThreeProcesses);
        Report.check("inter-process-mutex-freed-by-close", CuratorClient::mutexIsReentrantAndFreedByClose);
        Report.check("read-write-lock-and-semaphore", CuratorClient::readWriteLockAndSemaphore);
        Report.check("leader-latch-and-selector", CuratorClient::leaderLatch);
        Report.check("curator-cache", CuratorClient::curatorCache);
        Report.check("persistent-watcher", CuratorClient::persistentWatcher);
        Report.check("persistent-node", CuratorClient::persistentNode);
        Report.check("distributed-atomic-long", CuratorClient::atomicLongAndSharedCount);
        Report.check("double-barrier", CuratorClient::barriers);
        Report.check("group-member-and-discovery", CuratorClient::groupAndDiscovery);
        Report.check("connection-states", CuratorClient::connectionStates);
        Report.runAll(CuratorClient.class);
    }
}
