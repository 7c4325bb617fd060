import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Kafka's MaskField for values that are bytes of JSON, as MirrorMaker 2 has them: strings at the top level become empty.
 * All other bytes stay. It streams over the value and builds no tree; what is no JSON ends the task.
 */
public class MaskFields<R extends ConnectRecord<R>> implements Transformation<R> {
    private final JsonFactory json = new JsonFactory();
    private final Set<String> fields = new HashSet<>();

    @Override
    public void configure(Map<String, ?> settings) {
        for (String field : settings.get("fields").toString().split(",")) {
            fields.add(field.trim());
        }
    }

    @Override
    public R apply(R record) {
        if (record.value() == null) {
            return record;
        }
        byte[] value = (byte[]) record.value();
        try {
            byte[] masked = masked(value);
            return record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
                record.valueSchema(), masked, record.timestamp(), record.headers());
        } catch (IOException e) {
            throw new DataException("value is no JSON", e);
        }
    }

    private byte[] masked(byte[] value) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream(value.length);
        int copied = 0;
        try (JsonParser parser = json.createParser(value)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new DataException("value is no JSON object");
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                boolean wanted = fields.contains(parser.currentName());
                JsonToken token = parser.nextToken();
                if (wanted && token == JsonToken.VALUE_STRING) {
                    int start = (int) parser.currentTokenLocation().getByteOffset();
                    parser.finishToken();
                    out.write(value, copied, start - copied);
                    out.write('"');
                    out.write('"');
                    copied = (int) parser.currentLocation().getByteOffset();
                } else {
                    parser.skipChildren();
                }
            }
            if (parser.nextToken() != null) {
                throw new DataException("something stands behind the value");
            }
        }
        out.write(value, copied, value.length - copied);
        return out.toByteArray();
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("fields", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "names, with commas");
    }

    @Override
    public void close() {
    }
}
