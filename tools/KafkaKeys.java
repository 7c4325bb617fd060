import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Writes the keys that Kafka's own ConfigDefs define, as JSON: owner -> key -> type and default.
 *
 * <p>{@code tools/kafka_keys.py} runs it against the jars and keeps the answer as a data file.
 */
public class KafkaKeys {
    static final String MIRROR = "org.apache.kafka.connect.mirror.";
    static final String CLIENTS = "org.apache.kafka.clients.";
    static final String RUNTIME = "org.apache.kafka.connect.runtime.";

    public static void main(String[] args) throws Exception {
        Map<String, ConfigDef[]> owners = new LinkedHashMap<>();
        owners.put("mirror", new ConfigDef[] {
            method(MIRROR + "MirrorMakerConfig", "config"),
            field(MIRROR + "MirrorConnectorConfig", "BASE_CONNECTOR_CONFIG_DEF"),
            field(MIRROR + "MirrorClientConfig", "CONFIG_DEF")});
        owners.put("source", new ConfigDef[] {
            field(MIRROR + "MirrorSourceConfig", "CONNECTOR_CONFIG_DEF"),
            field(MIRROR + "DefaultTopicFilter$TopicFilterConfig", "DEF"),
            field(MIRROR + "DefaultConfigPropertyFilter$ConfigPropertyFilterConfig", "DEF")});
        owners.put("checkpoint", new ConfigDef[] {
            field(MIRROR + "MirrorCheckpointConfig", "CONNECTOR_CONFIG_DEF"),
            field(MIRROR + "DefaultTopicFilter$TopicFilterConfig", "DEF"),
            field(MIRROR + "DefaultGroupFilter$GroupFilterConfig", "DEF")});
        owners.put("heartbeat", new ConfigDef[] {field(MIRROR + "MirrorHeartbeatConfig", "CONNECTOR_CONFIG_DEF")});
        owners.put("connector", new ConfigDef[] {method(RUNTIME + "SourceConnectorConfig", "configDef")});
        owners.put("worker", new ConfigDef[] {worker()});
        owners.put("consumer", new ConfigDef[] {method(CLIENTS + "consumer.ConsumerConfig", "configDef")});
        owners.put("producer", new ConfigDef[] {method(CLIENTS + "producer.ProducerConfig", "configDef")});
        owners.put("admin", new ConfigDef[] {method(CLIENTS + "admin.AdminClientConfig", "configDef")});
        StringBuilder out = new StringBuilder("{\"kafka\":" + quoted(AppInfoParser.getVersion()));
        for (Map.Entry<String, ConfigDef[]> owner : owners.entrySet()) {
            Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>();
            for (ConfigDef definition : owner.getValue()) {
                keys.putAll(definition.configKeys());
            }
            out.append(',').append(quoted(owner.getKey())).append(":{").append(keys.values().stream()
                .map(KafkaKeys::entry).collect(Collectors.joining(","))).append('}');
        }
        System.out.println(out.append('}'));
    }

    static String entry(ConfigDef.ConfigKey key) {
        Object value = key.defaultValue;
        boolean absent = value == null || value == ConfigDef.NO_DEFAULT_VALUE || key.type == ConfigDef.Type.PASSWORD;
        return quoted(key.name) + ":[" + quoted(key.type.toString().toLowerCase()) + ","
            + (absent ? "null" : quoted(ConfigDef.convertToString(value, key.type))) + "]";
    }

    static ConfigDef worker() throws Exception {
        Class<?> crypto = Class.forName(RUNTIME + "distributed.Crypto");
        Method method = Class.forName(RUNTIME + "distributed.DistributedConfig").getDeclaredMethod("config", crypto);
        method.setAccessible(true);
        return (ConfigDef) method.invoke(null, crypto.getField("SYSTEM").get(null));
    }

    static ConfigDef field(String type, String name) throws Exception {
        Field field = Class.forName(type).getDeclaredField(name);
        field.setAccessible(true);
        return (ConfigDef) field.get(null);
    }

    static ConfigDef method(String type, String name) throws Exception {
        Method method = Class.forName(type).getDeclaredMethod(name);
        method.setAccessible(true);
        return (ConfigDef) method.invoke(null);
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }
}
