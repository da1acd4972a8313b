import java.io.FileInputStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;

/**
 * The Java client library over TLS. Arguments: a folder with the stores of two clients, "alice" and "bob", in each of the types, their
 * authority in PEM and PKCS12, all with the password "changeit", and the address of a secure port.
 */
public final class SecureClient {
    private static final String PASSWORD = "changeit";
    private static String folder;
    private static String address;

    private SecureClient() {
    }

    private static ZKClientConfig config(String who, String type) {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.SECURE_CLIENT, "true");
        config.setProperty(ZKClientConfig.ZOOKEEPER_CLIENT_CNXN_SOCKET, "org.apache.zookeeper.ClientCnxnSocketNetty");
        config.setProperty("zookeeper.ssl.keyStore.location", folder + "/" + who + "." + type);
        boolean pem = type.equals("pem");
        config.setProperty("zookeeper.ssl.trustStore.location", folder + (pem ? "/ca.pem" : "/trust.p12"));
        if (!pem) {
            config.setProperty("zookeeper.ssl.keyStore.password", PASSWORD);
            config.setProperty("zookeeper.ssl.trustStore.password", PASSWORD);
        }
        return config;
    }

    private static ZooKeeper connect(String who, String type) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(address, 9000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        }, config(who, type));
        Report.isTrue(connected.await(30, TimeUnit.SECONDS), who + " is connected with stores of the type " + type);
        return zk;
    }

    /** The name that Java has for the owner of a store. */
    private static String subject(String who) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(folder + "/" + who + ".p12")) {
            store.load(in, PASSWORD.toCharArray());
        }
        return ((X509Certificate) store.getCertificate(store.aliases().nextElement())).getSubjectX500Principal().getName();
    }

    private static List<String> identities(ZooKeeper zk) throws Exception {
        List<String> list = new ArrayList<>();
        for (ClientInfo info : zk.whoAmI()) {
            list.add(info.getAuthScheme() + ":" + info.getUser());
        }
        return list;
    }

    private static void session(String type) throws Exception {
        try (ZooKeeper zk = connect("alice", type)) {
            byte[] data = new byte[900_000];
            String path = zk.create("/tls-" + type, data, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            CountDownLatch changed = new CountDownLatch(1);
            Report.equal(zk.getData(path, event -> changed.countDown(), null).length, data.length, "length of what was written");
            zk.setData(path, "x".getBytes(StandardCharsets.UTF_8), -1);
            Report.isTrue(changed.await(30, TimeUnit.SECONDS), "the watch has fired");
            Report.isTrue(identities(zk).contains("x509:" + subject("alice")), "x509:" + subject("alice") + " is among " + identities(zk));
        }
    }

    private static void acl() throws Exception {
        try (ZooKeeper alice = connect("alice", "p12"); ZooKeeper bob = connect("bob", "p12")) {
            String path = alice.create("/alices", new byte[0], Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
            Report.equal(alice.getACL(path, null), List.of(new ACL(Perms.ALL, new Id("x509", subject("alice")))), "ACL");
            try {
                bob.getData(path, false, null);
                throw new AssertionError("somebody else may read");
            } catch (KeeperException.NoAuthException expected) {
                Report.equal(expected.getPath(), path, "path");
            }
            List<ACL> bobs = new ArrayList<>(List.of(new ACL(Perms.ALL, new Id("x509", subject("bob")))));
            alice.create("/bobs", new byte[0], bobs, CreateMode.EPHEMERAL);
            bob.getData("/bobs", false, null);
        }
    }

    public static void main(String[] args) throws Exception {
        folder = args[0];
        address = args[1];
        for (String type : List.of("jks", "p12", "pem")) {
            Report.check("session-" + type, () -> session(type));
        }
        Report.check("acl", SecureClient::acl);
        Report.runAll(SecureClient.class);
    }
}
