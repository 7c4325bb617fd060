import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.TreeMap;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.DropHeaders;
import org.apache.kafka.connect.transforms.Filter;
import org.apache.kafka.connect.transforms.InsertHeader;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.HasHeaderKey;
import org.apache.kafka.connect.transforms.predicates.Predicate;
import org.apache.kafka.connect.transforms.predicates.RecordIsTombstone;
import org.apache.kafka.connect.transforms.predicates.TopicNameMatches;

/**
 * Each line is `class predicate negate topic value headers parameter=value...`: headers as `name:value,...`, texts and
 * bytes in hexadecimal, `.` for an empty one, `-` for what is not there, `p.` before parameters of the predicate. The answer is `ok gone`, or
 * `ok kept headers`, as Connect's worker carries the class out where its predicate holds.
 */
class HeadersOracle {
    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    static String answer(String[] words) throws Exception {
        var own = new TreeMap<String, String>();
        var asked = new TreeMap<String, String>();
        for (int at = 6; at < words.length; at++) {
            int equals = words[at].indexOf('=');
            String name = words[at].substring(0, equals);
            String value = text(words[at].substring(equals + 1));
            if (name.startsWith("p.")) asked.put(name.substring(2), value); else own.put(name, value);
        }
        var headers = new ConnectHeaders();
        if (!words[5].equals("-")) {
            for (String header : words[5].split(",")) {
                int colon = header.indexOf(':');
                headers.add(text(header.substring(0, colon)), bytes(header.substring(colon + 1)), Schema.OPTIONAL_BYTES_SCHEMA);
            }
        }
        var record = new SourceRecord(null, null, text(words[3]), 0, null, null, Schema.OPTIONAL_BYTES_SCHEMA,
            bytes(words[4]), 0L, headers);
        try (Transformation<SourceRecord> transform = made(words[0]); Predicate<SourceRecord> test = test(words[1])) {
            transform.configure(own);
            if (test != null) test.configure(asked);
            boolean holds = test == null || test.test(record) != Boolean.parseBoolean(words[2]);
            var found = holds ? transform.apply(record) : record;
            if (found == null) return "ok gone";
            var told = new ArrayList<String>();
            for (var header : found.headers()) {
                told.add(hex(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + hex(written(header.schema(), header.value())));
            }
            return "ok kept " + (told.isEmpty() ? "-" : String.join(",", told));
        }
    }

    static byte[] written(Schema schema, Object value) {
        if (value == null || value instanceof byte[]) return (byte[]) value;
        return Values.convertToString(schema, value).getBytes(StandardCharsets.UTF_8);
    }

    static Transformation<SourceRecord> made(String name) {
        return switch (name) {
            case "InsertHeader" -> new InsertHeader<>();
            case "DropHeaders" -> new DropHeaders<>();
            default -> new Filter<>();
        };
    }

    static Predicate<SourceRecord> test(String name) {
        return switch (name) {
            case "HasHeaderKey" -> new HasHeaderKey<>();
            case "RecordIsTombstone" -> new RecordIsTombstone<>();
            case "TopicNameMatches" -> new TopicNameMatches<>();
            default -> null;
        };
    }

    static byte[] bytes(String word) {
        return word.equals("-") ? null : HexFormat.of().parseHex(word.equals(".") ? "" : word);
    }

    static String text(String word) {
        return new String(bytes(word), StandardCharsets.UTF_8);
    }

    static String hex(byte[] data) {
        return data == null ? "-" : data.length == 0 ? "." : HexFormat.of().formatHex(data);
    }
}
