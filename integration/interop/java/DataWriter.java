import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.cli.DelQuotaCommand;
import org.apache.zookeeper.cli.SetQuotaCommand;
import org.apache.zookeeper.StatsTrack;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Fills servers with nodes of every kind. Each line of standard input, "HOST:PORT BASE SESSION-TIMEOUT-MS COUNT", has the tree
 * below the path BASE written, the connection dropped without the end of its session, and READY printed.
 */
public final class DataWriter {
    private DataWriter() {
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static void refused(Report.Body body) throws Exception {
        try {
            body.run();
        } catch (KeeperException e) {
            return;
        }
        throw new AssertionError("not refused");
    }

    private static void kinds(ZooKeeper zk, String base) throws Exception {
        List<ACL> open = Ids.OPEN_ACL_UNSAFE;
        Stat stat = new Stat();
        zk.create(base, bytes("base"), open, CreateMode.PERSISTENT);
        zk.create(base + "/null", null, open, CreateMode.PERSISTENT);
        zk.create(base + "/empty", new byte[0], open, CreateMode.PERSISTENT);
        zk.create(base + "/binary", new byte[] {0, (byte) 0xff, 10, 13, 0x42, 0}, open, CreateMode.PERSISTENT);
        byte[] large = new byte[20_000];
        for (int i = 0; i < large.length; i++) {
            large[i] = (byte) (i * 7);
        }
        zk.create(base + "/large", large, open, CreateMode.PERSISTENT, stat);
        for (String name : List.of("grüße", "日本語", "кириллица", "with space", "a..b", "\u00a0")) {
            zk.create(base + "/" + name, bytes(name), open, CreateMode.PERSISTENT);
        }
        zk.create(base + "/seq", bytes(""), open, CreateMode.PERSISTENT);
        List<String> made = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            made.add(zk.create(base + "/seq/n-", bytes("" + i), open, CreateMode.PERSISTENT_SEQUENTIAL));
        }
        zk.delete(made.get(2), -1);
        zk.delete(made.get(6), -1); // the counter is ahead of the names
        zk.create(base + "/e", bytes("mine"), open, CreateMode.EPHEMERAL);
        zk.create(base + "/seq/e-", bytes("mine"), open, CreateMode.EPHEMERAL_SEQUENTIAL);
        zk.setData(base + "/e", bytes("changed"), 0);
        zk.create(base + "/container", bytes("c"), open, CreateMode.CONTAINER);
        zk.create(base + "/container/child", null, open, CreateMode.PERSISTENT);
        zk.create(base + "/container-unused", null, open, CreateMode.CONTAINER, stat);
        zk.create(base + "/ttl", bytes("t"), open, CreateMode.PERSISTENT_WITH_TTL, stat, 86_400_000L);
        zk.create(base + "/ttl-longest", bytes("t"), open, CreateMode.PERSISTENT_WITH_TTL, stat, (1L << 40) - 1);
        zk.create(base + "/ttl-", bytes("t"), open, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, stat, 86_400_000L);
        zk.create(base + "/deep", null, open, CreateMode.PERSISTENT);
        StringBuilder path = new StringBuilder(base + "/deep");
        for (int i = 0; i < 40; i++) {
            path.append("/d").append(i);
            zk.create(path.toString(), bytes("" + i), open, CreateMode.PERSISTENT);
        }
    }

    private static void versionsAndAcls(ZooKeeper zk, String base) throws Exception {
        zk.addAuthInfo("digest", bytes("bob:secret"));
        Id bob = new Id("digest", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=");
        zk.create(base + "/acl-auth", bytes("x"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        zk.create(base + "/acl-read", bytes("x"), Ids.READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        List<ACL> mixed = new ArrayList<>(List.of(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE), new ACL(Perms.ALL, new Id("ip", "127.0.0.0/8")),
            new ACL(Perms.WRITE | Perms.CREATE, new Id("ip", "10.1.2.3")), new ACL(Perms.ALL, bob)));
        zk.create(base + "/acl-mixed", bytes("x"), mixed, CreateMode.PERSISTENT);
        zk.create(base + "/acl-changed", bytes("x"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.setACL(base + "/acl-changed", mixed, 0);
        Collections.reverse(mixed);
        zk.setACL(base + "/acl-changed", mixed, 1);
        zk.create(base + "/versions", bytes("0"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        for (int i = 0; i < 9; i++) {
            zk.setData(base + "/versions", bytes("v" + i), i);
        }
        zk.setData(base + "/versions", null, -1);
        refused(() -> zk.setData(base + "/versions", null, 3));
        refused(() -> zk.delete(base + "/none", -1));
        refused(() -> zk.create(base + "/versions", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        zk.delete(base + "/versions", 10);
        zk.create(base + "/versions", bytes("made again"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    private static void multis(ZooKeeper zk, String base) throws Exception {
        List<ACL> open = Ids.OPEN_ACL_UNSAFE;
        zk.multi(List.of(
            Op.create(base + "/multi", bytes("m"), open, CreateMode.PERSISTENT),
            Op.create(base + "/multi/a", bytes("1"), open, CreateMode.PERSISTENT),
            Op.create(base + "/multi/s-", bytes("s"), open, CreateMode.PERSISTENT_SEQUENTIAL),
            Op.create(base + "/multi/e", bytes("e"), open, CreateMode.EPHEMERAL),
            Op.create(base + "/multi/c", bytes("c"), open, CreateMode.CONTAINER),
            Op.create(base + "/multi/t", bytes("t"), open, CreateMode.PERSISTENT_WITH_TTL, 86_400_000L),
            Op.setData(base + "/multi/a", bytes("2"), 0),
            Op.check(base + "/multi/a", 1),
            Op.create(base + "/multi/gone", null, open, CreateMode.PERSISTENT),
            Op.delete(base + "/multi/gone", 0)));
        refused(() -> zk.multi(List.of(Op.create(base + "/multi/rolled-back", null, open, CreateMode.PERSISTENT),
            Op.create(base + "/multi/s-", null, open, CreateMode.PERSISTENT_SEQUENTIAL), Op.check(base + "/multi/a", 77))));
        zk.create(base + "/multi/s-", bytes("after a failed multi"), open, CreateMode.PERSISTENT_SEQUENTIAL);
    }

    private static void quotas(ZooKeeper zk, String base) throws Exception {
        zk.create(base + "/quota", bytes("12345"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create(base + "/quota/before", bytes("123"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        StatsTrack limits = new StatsTrack();
        limits.setCount(100);
        limits.setByteHardLimit(1_000_000);
        SetQuotaCommand.createQuota(zk, base + "/quota", limits);
        zk.create(base + "/quota/after", bytes("1234567"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.setData(base + "/quota", bytes("12"), -1);
        zk.delete(base + "/quota/before", -1);
        zk.create(base + "/quota-gone", bytes("x"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        SetQuotaCommand.createQuota(zk, base + "/quota-gone", limits);
        DelQuotaCommand.delQuota(zk, base + "/quota-gone", null);
    }

    private static void many(ZooKeeper zk, String base, int count) throws Exception {
        zk.create(base + "/many", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            zk.create(base + "/many/n" + i, bytes("data of " + i), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT,
                (rc, path, ctx, name) -> done.countDown(), null);
            if (i % 5 == 0) {
                zk.setData(base + "/many/n" + i, bytes("changed"), -1, null, null);
            }
            if (i % 7 == 0) {
                zk.delete(base + "/many/n" + i, -1, null, null);
            }
        }
        done.await();
        zk.sync(base);
    }

    /** A session that can go away as if its process had died. */
    private static final class Session extends ZooKeeper {
        Session(String hosts, int timeoutMs, Watcher watcher) throws Exception {
            super(hosts, timeoutMs, watcher);
        }

        void drop() throws Exception {
            cnxn.disconnect();
        }
    }

    private static void fill(String hosts, String base, int timeoutMs, int count) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        Session zk = new Session(hosts, timeoutMs, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        kinds(zk, base);
        versionsAndAcls(zk, base);
        multis(zk, base);
        quotas(zk, base);
        many(zk, base, count);
        zk.drop();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            fill(words[0], words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            System.out.println("READY");
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
