import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Each line is `hexadecimal-key partitions`, with a dash for the empty key; the answer is `ok murmur2 partition`. */
class PartitionerOracle {
    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            byte[] key = words[0].equals("-") ? new byte[0] : HexFormat.of().parseHex(words[0]);
            int partition = BuiltInPartitioner.partitionForKey(key, Integer.parseInt(words[1]));
            System.out.println("ok " + Utils.murmur2(key) + " " + partition);
        }
    }
}
