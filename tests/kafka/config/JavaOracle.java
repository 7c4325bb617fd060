import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.connect.mirror.ConfigPropertyFilter;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;
import org.apache.kafka.connect.mirror.TopicFilter;

/** Answers, one line per line of input, what Java makes of it. All texts travel as base64 of UTF-16. */
public class JavaOracle {
    static final String MIRROR = "org.apache.kafka.connect.mirror.";

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null;) {
            StringBuilder out = new StringBuilder();
            String[] words = line.split(" ", -1);
            switch (words[0]) {
                case "properties" -> out.append(properties(decode(words[1])));
                case "regex" -> out.append(regex(decode(words[1]), decode(words[2])));
                case "whitelist" -> out.append(whitelist(decode(words[1]), decode(words[2])));
                case "client" -> out.append(client(decode(words[1]), words[2], words[3], words[4], words[5]));
                case "flow" -> out.append(flow(decode(words[1]), words[2], words[3]));
                case "subject" -> out.append("ok ").append(encode(new X500Principal(Base64.getDecoder().decode(words[1])).getName()));
                case "short" -> out.append("ok ").append(encode(shortName(decode(words[1]), decode(words[2]))));
                case "policy" -> out.append(policy(words[1], decode(words[2]), decode(words[3]), decode(words[4]), words[5]));
                case "acl" -> out.append(acl(decode(words[1]), words[2], words[3]));
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println(out);
        }
    }

    static String decode(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_16LE);
    }

    static String encode(String text) {
        return text == null ? "null" : "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_16LE));
    }

    static String encode(Map<?, ?> map) {
        StringBuilder out = new StringBuilder("ok");
        new TreeMap<>(map).forEach((k, v) -> out.append(' ').append(encode(k.toString())).append(' ').append(encode(v.toString())));
        return out.toString();
    }

    static Properties loaded(String text) throws Exception {
        Properties properties = new Properties();
        properties.load(new StringReader(text));
        return properties;
    }

    static String properties(String text) throws Exception {
        try {
            return encode(loaded(text));
        } catch (IllegalArgumentException e) {
            return "error";
        }
    }

    static String regex(String pattern, String text) {
        try {
            return Pattern.compile(pattern).matcher(text).matches() ? "true" : "false";
        } catch (PatternSyntaxException e) {
            return "error";
        }
    }

    /** Whether a whitelist of MirrorMaker 1 takes a topic: the class it used is in Kafka's tools to this day. */
    static String whitelist(String list, String topic) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.tools.filter.TopicFilter$IncludeList");
        Object filter;
        try {
            filter = type.getConstructor(String.class).newInstance(list);
        } catch (InvocationTargetException e) {
            return "error";
        }
        return type.getMethod("isTopicAllowed", String.class, boolean.class).invoke(filter, topic, true).toString();
    }

    /** Connectors by the text of their file: reading one scans the class path, which takes half a second. */
    static final Map<String, Object> CONNECTORS = new HashMap<>();

    static Object connector(String text, String source, String target) throws Exception {
        Map<String, String> raw = new HashMap<>();
        loaded(text).forEach((k, v) -> raw.put(k.toString(), v.toString()));
        // Connect would look into every class of the class path for plugins.
        raw.put("plugin.discovery", "service_load");
        Class<?> file = Class.forName(MIRROR + "MirrorMakerConfig");
        Class<?> pair = Class.forName(MIRROR + "SourceAndTarget");
        Object config = file.getConstructor(Map.class).newInstance(raw);
        Method base = file.getDeclaredMethod("connectorBaseConfig", pair, Class.class);
        base.setAccessible(true);
        Object flow = pair.getConstructor(String.class, String.class).newInstance(source, target);
        Object properties = base.invoke(config, flow, Class.forName(MIRROR + "MirrorSourceConnector"));
        Constructor<?> of = Class.forName(MIRROR + "MirrorSourceConfig").getDeclaredConstructor(Map.class);
        of.setAccessible(true);
        return of.newInstance(properties);
    }

    /** The effective properties of one client of MirrorMaker 2's source connector. */
    static String client(String text, String source, String target, String side, String role) throws Exception {
        Object connector = CONNECTORS.get(text);
        if (connector == null) {
            connector = connector(text, source, target);
            CONNECTORS.put(text, connector);
        }
        String name = side + role.substring(0, 1).toUpperCase() + role.substring(1) + "Config";
        Method method = Class.forName(MIRROR + "MirrorConnectorConfig").getDeclaredMethod(name, String.class);
        method.setAccessible(true);
        return encode((Map<?, ?>) method.invoke(connector, "role"));
    }

    /** The effective values of MirrorMaker 2's three connectors for a flow, as text; error where one is refused. */
    static String flow(String text, String source, String target) throws Exception {
        Map<String, String> raw = new HashMap<>();
        loaded(text).forEach((k, v) -> raw.put(k.toString(), v.toString()));
        // Connect would look into every class of the class path for plugins.
        raw.put("plugin.discovery", "service_load");
        Map<String, String> found = new TreeMap<>();
        try {
            Class<?> file = Class.forName(MIRROR + "MirrorMakerConfig");
            Class<?> pair = Class.forName(MIRROR + "SourceAndTarget");
            Object config = file.getConstructor(Map.class).newInstance(raw);
            Method base = file.getDeclaredMethod("connectorBaseConfig", pair, Class.class);
            base.setAccessible(true);
            Object flow = pair.getConstructor(String.class, String.class).newInstance(source, target);
            // The three differ in their class alone, and each call scans the class path.
            Object properties = base.invoke(config, flow, Class.forName(MIRROR + "MirrorSourceConnector"));
            for (String kind : new String[] {"Source", "Checkpoint", "Heartbeat"}) {
                Constructor<?> of = Class.forName(MIRROR + "Mirror" + kind + "Config").getDeclaredConstructor(Map.class);
                of.setAccessible(true);
                AbstractConfig read = (AbstractConfig) of.newInstance(properties);
                read.values().forEach((name, value) -> {
                    if (value != null && !(value instanceof Class)) {
                        found.put(name, ConfigDef.convertToString(value, read.typeOf(name)));
                    }
                });
            }
        } catch (InvocationTargetException e) {
            return "error";
        }
        return encode(found);
    }

    /** What a broker of `realm` calls a Kerberos principal, by the default rule. */
    static String shortName(String realm, String principal) throws Exception {
        return KerberosShortNamer.fromUnparsedRules(realm, List.of("DEFAULT")).shortName(KerberosName.parse(principal));
    }

    /** What MirrorMaker 2 makes of the ACL of a topic that it copies from a to b: name and operation at b; or nothing. */
    static String acl(String topic, String operation, String permission) throws Exception {
        Constructor<?> of = Class.forName(MIRROR + "MirrorSourceConnector").getDeclaredConstructor(
            SourceAndTarget.class, ReplicationPolicy.class, TopicFilter.class, ConfigPropertyFilter.class);
        of.setAccessible(true);
        DefaultReplicationPolicy policy = new DefaultReplicationPolicy();
        policy.configure(Map.of());
        Object connector = of.newInstance(
            new SourceAndTarget("a", "b"), policy, (TopicFilter) name -> true, (ConfigPropertyFilter) name -> true);
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry("User:x", "*", AclOperation.fromString(operation), AclPermissionType.fromString(permission)));
        if (!(boolean) asked(connector, "shouldReplicateAcl", binding)) {
            return "ok";
        }
        AclBinding made = (AclBinding) asked(connector, "targetAclBinding", binding);
        return "ok " + encode(made.pattern().name()) + " " + encode(made.entry().operation().name())
            + " " + encode(made.entry().permissionType().name());
    }

    static Object asked(Object connector, String name, AclBinding binding) throws Exception {
        Method method = connector.getClass().getDeclaredMethod(name, AclBinding.class);
        method.setAccessible(true);
        return method.invoke(connector, binding);
    }

    static String policy(String kind, String separator, String alias, String topic, String internal) throws Exception {
        Class<?> type = Class.forName(MIRROR + kind);
        Object policy = type.getConstructor().newInstance();
        type.getMethod("configure", Map.class).invoke(policy,
            Map.of("replication.policy.separator", separator, "source.cluster.alias", alias,
                "replication.policy.internal.topic.separator.enabled", internal));
        StringBuilder out = new StringBuilder("ok");
        for (String name : new String[] {"topicSource", "upstreamTopic", "originalTopic"}) {
            out.append(' ').append(encode((String) type.getMethod(name, String.class).invoke(policy, topic)));
        }
        out.append(' ').append(encode((String) type.getMethod("formatRemoteTopic", String.class, String.class).invoke(policy, alias, topic)));
        for (String name : new String[] {"isInternalTopic", "isHeartbeatsTopic"}) {
            out.append(' ').append(encode(type.getMethod(name, String.class).invoke(policy, topic).toString()));
        }
        return out.toString();
    }
}
