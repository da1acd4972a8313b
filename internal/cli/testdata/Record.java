import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.zookeeper.ZooKeeperMain;
import org.apache.zookeeper.util.ServiceUtils;

/**
 * Writes down what zkCli prints. Arguments: host:port of a server with a fresh data directory, and a golden file, whose
 * commands are run again. A line "$ words" is one command with a session of its own; the lines between "script" and "end"
 * are the standard input of one session. Each is printed with its standard output (1|), standard error (2|) and exit code.
 * What differs from run to run is replaced: times, zxids and the address. The lines that every command begins with are left
 * out.
 */
public final class Record {
    private static final Pattern WORD = Pattern.compile("\"([^\"]*)\"|(\\S+)");
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static String address;

    private Record() {
    }

    private static final class Session extends ZooKeeperMain {
        Session(String[] args) throws Exception {
            super(args);
        }

        void close() throws Exception {
            zk.close();
        }
    }

    /** Stands for the end of the process. */
    private static final class Exit extends Error {
        private final int code;

        Exit(int code) {
            this.code = code;
        }
    }

    private static String clean(String text) {
        return text.replace(address, "ADDRESS").replaceAll("time = .*", "time = TIME").replaceAll("Zxid = 0x[1-9a-f][0-9a-f]*", "Zxid = 0xZXID")
            .replaceAll("zxid: \\d+", "zxid: ZXID")
            .replaceFirst("^Connecting to ADDRESS\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n", "");
    }

    private static String lines(String mark, ByteArrayOutputStream bytes) {
        String text = clean(bytes.toString(StandardCharsets.UTF_8));
        bytes.reset();
        StringBuilder out = new StringBuilder();
        if (!text.isEmpty()) {
            for (String line : text.split("\n", -1)) {
                out.append(mark).append(line).append('\n');
            }
        }
        // The last line is what stands behind the last line break: nothing, as a rule.
        return out.toString().replaceAll(Pattern.quote(mark) + "\n$", "");
    }

    private static String run(List<String> words) throws Exception {
        ServiceUtils.setSystemExitProcedure(c -> {
            throw new Exit(c);
        });
        List<String> args = new ArrayList<>(List.of("-server", address, "-timeout", "9000", "-waitforconnection"));
        args.addAll(words);
        OUT.reset();
        ERR.reset();
        Session main = new Session(args.toArray(new String[0]));
        int code = 1;
        String thrown = "";
        try {
            Method run = ZooKeeperMain.class.getDeclaredMethod("run");
            run.setAccessible(true);
            run.invoke(main);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exit) {
                code = ((Exit) e.getCause()).code;
            } else {
                thrown = "2|" + e.getCause() + "\n";
            }
        }
        Thread.sleep(50);
        String output = lines("1|", OUT) + lines("2|", ERR) + thrown + "exit " + code + "\n\n";
        main.close();
        Thread.sleep(20);
        return output;
    }

    public static void main(String[] args) throws Exception {
        address = args[0];
        PrintStream stdout = System.out;
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        List<String> input = Files.readAllLines(Path.of(args[1]));
        for (int i = 0; i < input.size(); i++) {
            String line = input.get(i);
            if (line.startsWith("$ ")) {
                List<String> words = new ArrayList<>();
                Matcher m = WORD.matcher(line.substring(2));
                while (m.find()) {
                    words.add(m.group(1) != null ? m.group(1) : m.group(2));
                }
                stdout.print(line + "\n" + run(words));
            } else if (line.equals("script")) {
                StringBuilder text = new StringBuilder();
                for (i++; !input.get(i).equals("end"); i++) {
                    text.append(input.get(i)).append('\n');
                }
                System.setIn(new ByteArrayInputStream(text.toString().getBytes(StandardCharsets.UTF_8)));
                stdout.print("script\n" + text + "end\n" + run(List.of()));
            } else if (line.startsWith("#")) {
                stdout.print(line + "\n");
            }
        }
        stdout.flush();
        Runtime.getRuntime().halt(0);
    }
}
