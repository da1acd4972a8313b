import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.apache.zookeeper.ZooKeeperMain;
import org.apache.zookeeper.util.ServiceUtils;

/** The commands of zkCli.sh at work, with their output and exit codes. */
public final class CommandLine {
    private static final String STAT = "cZxid = 0x[0-9a-f]+\nctime = .+\nmZxid = 0x[0-9a-f]+\nmtime = .+\npZxid = 0x[0-9a-f]+\n"
        + "cversion = (-?\\d+)\ndataVersion = (\\d+)\naclVersion = (\\d+)\nephemeralOwner = 0x([0-9a-f]+)\n"
        + "dataLength = (\\d+)\nnumChildren = (\\d+)";
    private static String address;

    private CommandLine() {
    }

    /** What one command printed, without what every command prints. */
    private record Output(int code, String out, String err) {
        Output expect(int wantCode, String wantOut, String wantErr) {
            if (code != wantCode || !out.equals(wantOut) || !err.equals(wantErr)) {
                throw new AssertionError(String.format("got exit %d, stdout [%s], stderr [%s]; want %d, [%s], [%s]", code, out, err,
                    wantCode, wantOut, wantErr));
            }
            return this;
        }

        Output matches(int wantCode, String outPattern, String errPattern) {
            if (code != wantCode || !Pattern.matches(outPattern, out) || !Pattern.matches(errPattern, err)) {
                throw new AssertionError(String.format("got exit %d, stdout [%s], stderr [%s]; want %d, /%s/, /%s/", code, out, err,
                    wantCode, outPattern, errPattern));
            }
            return this;
        }
    }

    /** Takes away what the event thread prints at some moment, so that the rest can be compared. */
    private static String clean(String text) {
        List<String> kept = new ArrayList<>();
        for (String line : text.split("\n")) {
            if (!line.isEmpty() && !line.startsWith("Connecting to ") && !line.equals("WATCHER::")
                && !line.contains("type:None path:null")) {
                kept.add(line);
            }
        }
        return String.join("\n", kept);
    }

    /**
     * Collects what is printed. The commands keep the System.out that they find when their classes are loaded, so that this
     * one is put in place once and emptied for each command.
     */
    private static final class Capture extends ByteArrayOutputStream {
        synchronized String take() {
            String text = toString(StandardCharsets.UTF_8);
            reset();
            return clean(text);
        }
    }

    private static final Capture OUT = new Capture();
    private static final Capture ERR = new Capture();

    /** Runs one command as the main class does for one that is given as arguments, with a session of its own. */
    private static Output cli(String... words) throws Exception {
        AtomicInteger code = new AtomicInteger(-1);
        ServiceUtils.setSystemExitProcedure(code::set);
        List<String> args = new ArrayList<>(List.of("-server", address, "-timeout", "9000", "-waitforconnection"));
        args.addAll(Arrays.asList(words));
        OUT.take();
        ERR.take();
        Session main = new Session(args.toArray(new String[0]));
        try {
            Method run = ZooKeeperMain.class.getDeclaredMethod("run");
            run.setAccessible(true);
            run.invoke(main);
            return new Output(code.get(), OUT.take(), ERR.take());
        } finally {
            main.close();
        }
    }

    private static final class Session extends ZooKeeperMain {
        Session(String[] args) throws Exception {
            super(args);
        }

        void close() throws Exception {
            zk.close();
        }
    }

    /** Runs the main class in a process of its own; input is what a script would pipe into it. */
    private static Output process(String input, String... words) throws Exception {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Dfile.encoding=UTF-8", "-cp",
            System.getProperty("java.class.path"), "org.apache.zookeeper.ZooKeeperMain", "-server", address, "-timeout", "9000",
            "-waitforconnection"));
        command.addAll(Arrays.asList(words));
        Path dir = Files.createTempDirectory("zkcli");
        File out = dir.resolve("out").toFile();
        File err = dir.resolve("err").toFile();
        Process process = new ProcessBuilder(command).redirectOutput(out).redirectError(err).start();
        try (var stdin = process.getOutputStream()) {
            stdin.write(input.getBytes(StandardCharsets.UTF_8));
        }
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("zkCli did not end");
        }
        Output output = new Output(process.exitValue(), clean(Files.readString(out.toPath())), clean(Files.readString(err.toPath())));
        Files.delete(out.toPath());
        Files.delete(err.toPath());
        Files.delete(dir);
        return output;
    }

    private static void createCommands() throws Exception {
        cli("create", "/z", "root").expect(0, "", "Created /z");
        cli("create", "/z").expect(1, "", "Node already exists: /z");
        cli("create", "/z/none/x").expect(1, "", "Node does not exist: /z/none/x");
        cli("create", "-s", "/z/s-", "x").expect(0, "", "Created /z/s-0000000000");
        cli("create", "-e", "/z/e", "x").expect(0, "", "Created /z/e");
        cli("create", "-s", "-e", "/z/s-", "x").expect(0, "", "Created /z/s-0000000002");
        cli("create", "-c", "/z/box").expect(0, "", "Created /z/box");
        cli("create", "-t", "3600000", "/z/ttl", "x").expect(0, "", "Created /z/ttl");
        cli("create", "-s", "-t", "3600000", "/z/ttl-", "x").expect(0, "", "Created /z/ttl-0000000005");
        cli("create", "/z/acl", "x", "world:anyone:r").expect(0, "", "Created /z/acl");
        cli("create", "/z/bad", "x", "world:anyone").expect(1, "", "world:anyone does not have the form scheme:id:perm\n"
            + "KeeperErrorCode = InvalidACL\nAcl is not valid : null");
        cli("create", "/z/grüße", "日本").expect(0, "", "Created /z/grüße");
        cli("get", "/z/grüße").expect(0, "日本", "");
        // The ephemerals went with the sessions that made them.
        cli("ls", "/z").expect(0, "[acl, box, grüße, s-0000000000, ttl, ttl-0000000005]", "");
    }

    private static void getAndStat() throws Exception {
        cli("create", "/z-get", "hello").expect(0, "", "Created /z-get");
        cli("get", "/z-get").expect(0, "hello", "");
        cli("get", "-s", "/z-get").matches(0, "hello\n" + STAT, "");
        cli("get", "-b", "/z-get").expect(0, "aGVsbG8=", "");
        cli("get", "-x", "/z-get").matches(0, "(?s).*68 65 6c 6c 6f.*hello.*", "");
        cli("stat", "/z-get").matches(0, STAT.replace("(\\d+)", "\\d+"), "");
        cli("stat", "/z-none").expect(1, "", "Node does not exist: /z-none");
        cli("get", "/z-none").expect(1, "", "Node does not exist: /z-none");
        cli("create", "/z-null").expect(0, "", "Created /z-null");
        cli("get", "/z-null").expect(0, "null", "");
        cli("get", "z-relative").matches(1, "", "(?s).*Path must start with / character.*");
    }

    private static void setAndDelete() throws Exception {
        cli("create", "/z-set", "0").expect(0, "", "Created /z-set");
        cli("set", "/z-set", "1").expect(0, "", "");
        cli("set", "-s", "/z-set", "22").matches(0, STAT.replace("dataVersion = (\\d+)", "dataVersion = 2")
            .replace("dataLength = (\\d+)", "dataLength = 2"), "");
        cli("set", "-v", "7", "/z-set", "x").expect(1, "", "version No is not valid : /z-set");
        cli("set", "-v", "2", "/z-set", "3").expect(0, "", "");
        cli("set", "-b", "/z-set", "aGVsbG8=").expect(0, "", "");
        cli("get", "/z-set").expect(0, "hello", "");
        cli("create", "/z-set/c").expect(0, "", "Created /z-set/c");
        cli("delete", "/z-set").expect(1, "", "Node not empty: /z-set");
        cli("delete", "-v", "9", "/z-set/c").expect(1, "", "version No is not valid : /z-set/c");
        cli("delete", "-v", "0", "/z-set/c").expect(0, "", "");
        cli("delete", "/z-set/c").expect(1, "", "Node does not exist: /z-set/c");
        for (String path : List.of("/z-set/a", "/z-set/a/b", "/z-set/a/b/c", "/z-set/d")) {
            cli("create", path).expect(0, "", "Created " + path);
        }
        cli("deleteall", "/z-set").expect(0, "", "");
        cli("stat", "/z-set").expect(1, "", "Node does not exist: /z-set");
        cli("delete", "/zookeeper").expect(1, "", "Arguments are not valid : /zookeeper");
    }

    private static void lists() throws Exception {
        for (String path : List.of("/z-ls", "/z-ls/b", "/z-ls/a", "/z-ls/a/x")) {
            cli("create", path).expect(0, "", "Created " + path);
        }
        cli("ls", "/z-ls").expect(0, "[a, b]", "");
        cli("ls", "-s", "/z-ls").matches(0, "\\[a, b\\]\n" + STAT, "");
        cli("ls", "-w", "/z-ls").expect(0, "[a, b]", "");
        cli("ls", "-R", "/z-ls").expect(0, "/z-ls\n/z-ls/a\n/z-ls/b\n/z-ls/a/x", "");
        cli("ls", "/zookeeper").expect(0, "[config, quota]", "");
        cli("ls", "/z-none").expect(1, "", "Node does not exist: /z-none");
        cli("getAllChildrenNumber", "/z-ls").expect(0, "3", "");
        cli("sync", "/z-ls").expect(0, "Sync is OK", "");
        cli("getEphemerals").expect(0, "[]", "");
        cli("getEphemerals", "/z-ls").expect(0, "[]", "");
        cli("whoami").expect(0, "Auth scheme: User\nip: 127.0.0.1", "");
        cli("version").matches(0, "ZooKeeper CLI version: 3\\.9\\.5-.*", "");
        cli("config").matches(0, System.getenv("INTEROP_ENSEMBLE") == null ? ""
            : "(server\\.\\d=127\\.0\\.0\\.1:\\d+:\\d+:participant\n){3}version=0", "");
        cli("reconfig", "-remove", "3").matches(1, "", "KeeperErrorCode = ReconfigDisabled.*|.*[Rr]econfig.*disabled.*");
    }

    private static void accessLists() throws Exception {
        cli("create", "/z-acl").expect(0, "", "Created /z-acl");
        cli("create", "/z-acl/c").expect(0, "", "Created /z-acl/c");
        cli("getAcl", "/z-acl").expect(0, "'world,'anyone\n: cdrwa", "");
        cli("getAcl", "-s", "/z-acl").matches(0, "'world,'anyone\n: cdrwa\n" + STAT, "");
        cli("setAcl", "/z-acl", "world:anyone:cdra,ip:127.0.0.1:rw").expect(0, "", "");
        cli("getAcl", "/z-acl").expect(0, "'world,'anyone\n: cdra\n'ip,'127.0.0.1\n: rw", "");
        cli("setAcl", "-v", "9", "/z-acl", "world:anyone:cdrwa").expect(1, "", "version No is not valid : /z-acl");
        cli("setAcl", "-v", "1", "-s", "/z-acl", "world:anyone:cdrwa").matches(0, STAT.replace("aclVersion = (\\d+)", "aclVersion = 2"), "");
        cli("setAcl", "-R", "/z-acl", "world:anyone:ra").expect(0, "", "");
        cli("getAcl", "/z-acl/c").expect(0, "'world,'anyone\n: ra", "");
        cli("set", "/z-acl/c", "x").expect(1, "", "Insufficient permission : /z-acl/c");
        cli("create", "/z-acl/d").expect(1, "", "Insufficient permission : /z-acl/d");
        cli("setAcl", "/z-acl", "nope:x:r").expect(1, "", "Acl is not valid : /z-acl");
    }

    private static void quotas() throws Exception {
        cli("create", "/z-quota", "12345").expect(0, "", "Created /z-quota");
        cli("listquota", "/z-quota").expect(0, "", "absolute path is /zookeeper/quota/z-quota/zookeeper_limits\n"
            + "quota for /z-quota does not exist.");
        cli("setquota", "-n", "3", "/z-quota").expect(0, "", "");
        cli("setquota", "-B", "100", "/z-quota").expect(0, "", "");
        cli("create", "/z-quota/c", "123").expect(0, "", "Created /z-quota/c");
        cli("listquota", "/z-quota").expect(0, "Output quota for /z-quota count=3,bytes=-1=;byteHardLimit=100;countHardLimit=-1\n"
            + "Output stat for /z-quota count=2,bytes=8", "absolute path is /zookeeper/quota/z-quota/zookeeper_limits");
        cli("delquota", "-n", "/z-quota").expect(0, "", "");
        cli("listquota", "/z-quota").expect(0, "Output quota for /z-quota count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1\n"
            + "Output stat for /z-quota count=2,bytes=8", "absolute path is /zookeeper/quota/z-quota/zookeeper_limits");
        cli("setquota", "-N", "2", "/z-quota").expect(0, "", "");
        cli("create", "/z-quota/d", "").expect(1, "", "Quota has exceeded : /z-quota/d");
        cli("set", "/z-quota/c", "x".repeat(200)).expect(1, "", "Quota has exceeded : /z-quota/c");
        cli("delquota", "/z-quota").expect(0, "", "");
        cli("create", "/z-quota/d", "").expect(0, "", "Created /z-quota/d");
        cli("listquota", "/z-quota").expect(0, "", "absolute path is /zookeeper/quota/z-quota/zookeeper_limits\n"
            + "quota for /z-quota does not exist.");
    }

    private static void processes() throws Exception {
        process("", "create", "/z-proc", "by a process").expect(0, "", "Created /z-proc");
        process("", "get", "/z-proc").expect(0, "by a process", "");
        process("", "delete", "/z-none").expect(1, "", "Node does not exist: /z-none");
        Output unknown = process("", "frobnicate");
        Report.equal(unknown.code(), 127, "exit code of an unknown command");
        Report.isTrue(unknown.err().endsWith("Command not found: Command not found frobnicate"), "unknown command told");
    }

    /** A script on standard input: one session for all of it, so ephemerals, logins and watches stay. */
    private static void script() throws Exception {
        String script = String.join("\n",
            "create /z-script data",
            "create -e /z-script/e mine",
            "getEphemerals",
            "ls /z-script",
            "addauth digest bob:secret",
            "whoami",
            "create /z-script/private secret auth::cdrwa",
            "getAcl /z-script/private",
            "get /z-script/private",
            "addWatch -m PERSISTENT /z-script",
            "set /z-script changed",
            "sync /z-script",
            "removewatches /z-script -p",
            "stat /z-script/e",
            "delete /z-script/e",
            "ls /z-script",
            "quit", "");
        Output output = process(script);
        String text = output.out();
        List<String> want = List.of("[/z-script/e]", "[e]", "Auth scheme: User", "digest: bob", "'digest,'bob:fyVmFCwVbTJYrznoSu1koqYEYF0=",
            ": cdrwa", "secret", "Sync is OK", "ephemeralOwner = 0x", "[private]");
        int at = 0;
        for (String part : want) {
            int found = text.indexOf(part, at);
            Report.isTrue(found >= 0, "output has [" + part + "] in its place: " + text);
            at = found + part.length();
        }
        Report.isTrue(Pattern.compile("ephemeralOwner = 0x[1-9a-f]").matcher(text).find(), "the owner is shown: " + text);
        Report.isTrue(text.contains("WatchedEvent state:SyncConnected type:NodeDataChanged path:/z-script"), "the event is shown: " + text);
        Report.equal(output.code(), 0, "exit code");
        cli("get", "/z-script/private").expect(1, "", "Insufficient permission : /z-script/private");
    }

    public static void main(String[] args) {
        address = args[0];
        Report.check("create", CommandLine::createCommands);
        Report.check("get-stat", CommandLine::getAndStat);
        Report.check("set-delete-deleteall", CommandLine::setAndDelete);
        Report.check("ls-sync-whoami-config", CommandLine::lists);
        Report.check("getacl-setacl", CommandLine::accessLists);
        Report.check("setquota-listquota-delquota", CommandLine::quotas);
        Report.check("one-shot-processes", CommandLine::processes);
        Report.check("script-on-stdin", CommandLine::script);
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Report.runAll(CommandLine.class);
    }
}
