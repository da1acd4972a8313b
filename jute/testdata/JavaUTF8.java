import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/**
 * Prints the checksums that TestRepairAsJava compares with: of all byte sequences up to a length over an alphabet,
 * decoded as UTF-8 by Java and encoded again, each with its length in front. Run it with: java JavaUTF8.java
 */
public class JavaUTF8 {
    static final CRC32 crc = new CRC32();

    public static void main(String[] args) {
        byte[] all = new byte[256];
        for (int i = 0; i < 256; i++) all[i] = (byte) i;
        int[] edges = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
            0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff};
        byte[] edge = new byte[edges.length];
        for (int i = 0; i < edges.length; i++) edge[i] = (byte) edges[i];
        print(all, 2);
        print(edge, 4);
    }

    static void print(byte[] alphabet, int lengthMax) {
        crc.reset();
        for (int n = 0; n <= lengthMax; n++) walk(alphabet, new byte[n], 0);
        System.out.printf("%d bytes, up to %d: 0x%08x%n", alphabet.length, lengthMax, crc.getValue());
    }

    static void walk(byte[] alphabet, byte[] b, int at) {
        if (at == b.length) {
            byte[] out = new String(b, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8);
            crc.update(out.length);
            crc.update(out, 0, out.length);
            return;
        }
        for (byte c : alphabet) {
            b[at] = c;
            walk(alphabet, b, at + 1);
        }
    }
}
