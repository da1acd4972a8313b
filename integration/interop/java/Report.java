import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;

/**
 * The line protocol between a client program and the test that runs it: one line "PASS name" or "FAIL name: why" for each
 * check, "CALL what" to have something done to the server, "END count" at the end.
 */
final class Report {
    interface Body {
        void run() throws Exception;
    }

    private record Check(String name, Body body) {
    }

    // The real streams: the command line's tests put others in their place.
    private static final PrintStream OUT = System.out;
    private static final PrintStream ERR = System.err;
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private static final List<Check> CHECKS = new ArrayList<>();

    private Report() {
    }

    static void check(String name, Body body) {
        CHECKS.add(new Check(name, body));
    }

    static void call(String what) throws Exception {
        OUT.println("CALL " + what);
        OUT.flush();
        String answer = IN.readLine();
        if (answer == null || !answer.startsWith("OK")) {
            throw new AssertionError("CALL " + what + " was answered " + answer);
        }
    }

    static void equal(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": got " + got + ", want " + want);
        }
    }

    static void isTrue(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError("not true: " + what);
        }
    }

    /** Waits until the condition holds. */
    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within 30 s: " + what);
            }
            Thread.sleep(10);
        }
    }

    static void runAll(Class<?> program) {
        int failed = 0;
        for (Check check : CHECKS) {
            try {
                check.body().run();
                OUT.println("PASS " + check.name());
            } catch (Throwable err) {
                failed++;
                String line = Arrays.stream(err.getStackTrace()).filter(f -> f.getClassName().startsWith(program.getName()))
                    .findFirst().map(f -> "line " + f.getLineNumber() + ": ").orElse("");
                OUT.println("FAIL " + check.name() + ": " + line + err.toString().replaceAll("\\s+", " "));
                err.printStackTrace(ERR);
            }
            OUT.flush();
        }
        OUT.println("END " + CHECKS.size());
        OUT.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }
}
