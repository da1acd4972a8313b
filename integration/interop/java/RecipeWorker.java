import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * A process that takes part in recipes through Curator: RecipeWorker HOSTS SESSION_MS NAME. It is told what to do by lines on
 * standard input and answers on standard output; integration/recipes_worker_test.go has the list.
 */
public final class RecipeWorker {
    private final CuratorFramework curator;
    private final String name;
    private final AtomicBoolean keep = new AtomicBoolean();
    private final Semaphore freed = new Semaphore(0);
    private volatile boolean stopping;
    private Thread runner;
    private DistributedDoubleBarrier barrier;
    private ServiceDiscovery<String> discovery;

    /** Curator's mutex, which shows the node that it holds by to subclasses only. */
    private static final class OpenMutex extends InterProcessMutex {
        OpenMutex(CuratorFramework curator, String path) {
            super(curator, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private interface Turn {
        void take() throws Exception;
    }

    private RecipeWorker(String hosts, int sessionMs, String name) throws Exception {
        this.name = name;
        // The ensemble's own configuration names addresses that would lead past the proxies of the test.
        curator = CuratorFrameworkFactory.builder().connectString(hosts).sessionTimeoutMs(sessionMs).connectionTimeoutMs(1000)
            .ensembleTracker(false).retryPolicy(new RetryForever(20)).build();
        curator.start();
        curator.blockUntilConnected();
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    /** Makes the record of a holder. To repeat it does no harm, so that Curator may do so after a lost connection. */
    private String record(String journal, String node, long token) throws Exception {
        try {
            curator.transaction().forOperations(curator.transactionOp().check().forPath(node),
                curator.transactionOp().setData().forPath(journal, bytes(name + " " + token)));
            return "accepted";
        } catch (KeeperException.NoNodeException e) {
            return "refused";
        }
    }

    /** What a holder does; node is the one by which it holds. */
    private void hold(String journal, String node) throws Exception {
        Stat stat = node == null ? null : curator.checkExists().forPath(node);
        if (stat == null) {
            say("GONE");
            return;
        }
        long token = stat.getCzxid();
        String answer = record(journal, node, token);
        say((answer.equals("accepted") ? "IN " : "REFUSED ") + token);
        if (answer.equals("accepted") && keep.compareAndSet(true, false)) {
            say("KEPT " + token);
            freed.acquire();
            say("LATE " + record(journal, node, token));
        }
    }

    /** The first node of our session below dir whose name has the part. */
    private String ownNode(String dir, String part) throws Exception {
        long session = curator.getZookeeperClient().getZooKeeper().getSessionId();
        List<String> names = curator.getChildren().forPath(dir).stream().filter(n -> n.contains(part))
            .sorted(Comparator.comparing(n -> n.substring(n.length() - 10))).toList();
        for (String one : names) {
            Stat stat = curator.checkExists().forPath(dir + "/" + one);
            if (stat != null && stat.getEphemeralOwner() == session) {
                return dir + "/" + one;
            }
        }
        return null;
    }

    private void lock(String dir, String journal) throws Exception {
        OpenMutex mutex = new OpenMutex(curator, dir);
        mutex.acquire();
        try {
            hold(journal, mutex.node());
        } finally {
            mutex.release();
        }
    }

    private void readWrite(String dir, String journal, boolean write) throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(curator, dir);
        InterProcessMutex side = write ? lock.writeLock() : lock.readLock();
        side.acquire();
        try {
            hold(journal, ownNode(dir, write ? "__WRIT__" : "__READ__"));
        } finally {
            side.release();
        }
    }

    private void semaphore(String dir, String journal, int leases) throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(curator, dir, leases);
        Lease lease = semaphore.acquire();
        try {
            hold(journal, dir + "/leases/" + lease.getNodeName());
        } finally {
            semaphore.returnLease(lease);
        }
    }

    private void latch(String dir, String journal) throws Exception {
        try (LeaderLatch latch = new LeaderLatch(curator, dir, name)) {
            latch.start();
            latch.await();
            hold(journal, ownNode(dir, "latch-"));
        }
    }

    private void selector(String dir, String journal) throws Exception {
        LeaderSelector selector = new LeaderSelector(curator, dir, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                hold(journal, ownNode(dir, "lock-"));
            }
        });
        selector.setId(name);
        selector.autoRequeue();
        selector.start();
        while (!stopping) {
            Thread.sleep(5);
        }
        selector.close();
    }

    private Turn turnOf(String[] word) {
        String dir = word[2];
        String journal = word[3];
        int[] turns = {0};
        return switch (word[1]) {
            case "lock" -> () -> lock(dir, journal);
            case "rw" -> () -> readWrite(dir, journal, turns[0]++ % 3 == 0);
            case "semaphore" -> () -> semaphore(dir, journal, Integer.parseInt(word[4]));
            case "latch" -> () -> latch(dir, journal);
            case "election" -> () -> selector(dir, journal);
            default -> throw new IllegalArgumentException(word[1]);
        };
    }

    private void run(String[] word) {
        stopping = false;
        Turn turn = turnOf(word);
        runner = new Thread(() -> {
            while (!stopping) {
                try {
                    turn.take();
                } catch (Exception e) {
                    say("FAULT " + e.toString().replaceAll("\\s+", " "));
                }
            }
            say("STOPPED");
        });
        runner.setDaemon(true);
        runner.start();
    }

    private void enter(String[] word) throws Exception {
        barrier = new DistributedDoubleBarrier(curator, word[1], Integer.parseInt(word[3]));
        barrier.enter();
        curator.setData().forPath(word[2], bytes(name + " entered"));
        say("ENTERED");
    }

    private void leave(String[] word) throws Exception {
        barrier.leave();
        curator.setData().forPath(word[1], bytes(name + " left"));
        say("LEFT");
    }

    private static ServiceInstance<String> instance(String[] word) throws Exception {
        return ServiceInstance.<String>builder().name(word[2]).id(word[3]).address(word[4]).port(Integer.parseInt(word[5]))
            .payload(word[6]).build();
    }

    private ServiceDiscovery<String> discovery(String dir) throws Exception {
        if (discovery == null) {
            discovery = ServiceDiscoveryBuilder.builder(String.class).client(curator).basePath(dir).build();
            discovery.start();
        }
        return discovery;
    }

    private void watch(String[] word) throws Exception {
        ServiceCache<String> cache = discovery(word[1]).serviceCacheBuilder().name(word[2]).build();
        cache.addListener(new ServiceCacheListener() {
            @Override
            public void cacheChanged() {
                saySeen(cache);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        });
        cache.start();
        saySeen(cache);
    }

    private static synchronized void saySeen(ServiceCache<String> cache) {
        say("SEES " + cache.getInstances().stream().map(i -> i.getId() + "=" + i.getAddress() + ":" + i.getPort() + "/" + i.getPayload())
            .sorted().collect(Collectors.joining(",")));
    }

    private void obey(String line) throws Exception {
        String[] word = line.split(" ");
        switch (word[0]) {
            case "run" -> run(word);
            case "keep" -> keep.set(true);
            case "free" -> freed.release();
            case "stop" -> stopping = true;
            case "enter" -> enter(word);
            case "leave" -> leave(word);
            case "register" -> {
                discovery(word[1]).registerService(instance(word));
                say("REGISTERED");
            }
            case "unregister" -> {
                discovery(word[1]).unregisterService(instance(word));
                say("UNREGISTERED");
            }
            case "watch" -> watch(word);
            default -> throw new IllegalArgumentException(line);
        }
    }

    public static void main(String[] args) throws Exception {
        RecipeWorker worker = new RecipeWorker(args[0], Integer.parseInt(args[1]), args[2]);
        say("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            worker.obey(line);
        }
        if (worker.discovery != null) {
            worker.discovery.close();
        }
        worker.curator.close();
        Runtime.getRuntime().halt(0);
    }
}
