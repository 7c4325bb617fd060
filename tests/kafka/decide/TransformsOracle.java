import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Cast;
import org.apache.kafka.connect.transforms.MaskField;
import org.apache.kafka.connect.transforms.RegexRouter;
import org.apache.kafka.connect.transforms.ReplaceField;
import org.apache.kafka.connect.transforms.TimestampRouter;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Each line is `class topic timestamp value parameter=value...` in hexadecimal but for the class and the time; the
 * answer is `ok topic value`, or `error` where Kafka's class refuses. Values are JSON without a schema.
 */
class TransformsOracle {
    public static void main(String[] arguments) throws Exception {
        var json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "false"), false);
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(json, line.split(" ")));
        }
    }

    static String answer(JsonConverter json, String[] words) {
        var parameters = new TreeMap<String, String>();
        for (int at = 4; at < words.length; at++) {
            int equals = words[at].indexOf('=');
            parameters.put(words[at].substring(0, equals), text(words[at].substring(equals + 1)));
        }
        try (Transformation<SourceRecord> transform = made(words[0])) {
            transform.configure(parameters);
            SchemaAndValue value = json.toConnectData("t", bytes(words[3]));
            var record = new SourceRecord(null, null, text(words[1]), 0, null, null, value.schema(), value.value(),
                Long.parseLong(words[2]));
            SourceRecord found = transform.apply(record);
            byte[] written = json.fromConnectData("t", found.valueSchema(), found.value());
            return "ok " + hex(found.topic().getBytes(StandardCharsets.UTF_8)) + " " + hex(written == null ? new byte[0] : written);
        } catch (Exception error) {
            return "error " + error.getClass().getSimpleName();
        }
    }

    static Transformation<SourceRecord> made(String name) {
        return switch (name) {
            case "Cast" -> new Cast.Value<>();
            case "MaskField" -> new MaskField.Value<>();
            case "ReplaceField" -> new ReplaceField.Value<>();
            case "RegexRouter" -> new RegexRouter<>();
            default -> new TimestampRouter<>();
        };
    }

    static byte[] bytes(String word) {
        return HexFormat.of().parseHex(word.equals("-") ? "" : word);
    }

    static String text(String word) {
        return new String(bytes(word), StandardCharsets.UTF_8);
    }

    static String hex(byte[] data) {
        return data.length == 0 ? "-" : HexFormat.of().formatHex(data);
    }
}
