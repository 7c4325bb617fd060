package org.apache.kafka.connect.mirror;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Answers, one line per line of input, what MirrorMaker 2's own classes make of it. Texts travel as hexadecimal UTF-8
 * behind an equals sign. In their package, for what writes records and translates by offset syncs is not public.
 */
public class MirrorOracle {
    static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                answer = switch (words[0]) {
                    case "write" -> write(words);
                    case "read" -> text(read(words).toString());
                    case "translate" -> translate(words[1], words[2]);
                    case "names" -> names(policy(words[1], decoded(words[2]), words[3]), words[4]);
                    case "client" -> client(words);
                    default -> throw new IllegalArgumentException(line);
                };
            } catch (Exception error) {
                System.out.println("error " + text(error.toString()));
                continue;
            }
            System.out.println("ok " + answer);
        }
    }

    static String write(String[] words) {
        switch (words[1]) {
            case "checkpoint" -> {
                Checkpoint made = new Checkpoint(decoded(words[2]), place(words, 3), number(words[5]), number(words[6]),
                    decoded(words[7]));
                return bytes(made.recordKey()) + " " + bytes(made.recordValue());
            }
            case "heartbeat" -> {
                Heartbeat made = new Heartbeat(decoded(words[2]), decoded(words[3]), number(words[4]));
                return bytes(made.recordKey()) + " " + bytes(made.recordValue());
            }
            default -> {
                OffsetSync made = new OffsetSync(place(words, 2), number(words[4]), number(words[5]));
                return bytes(made.recordKey()) + " " + bytes(made.recordValue());
            }
        }
    }

    static Object read(String[] words) {
        ConsumerRecord<byte[], byte[]> record =
            new ConsumerRecord<>("any", 0, 0, HexFormat.of().parseHex(words[2]), HexFormat.of().parseHex(words[3]));
        return switch (words[1]) {
            case "checkpoint" -> Checkpoint.deserializeRecord(record);
            case "heartbeat" -> Heartbeat.deserializeRecord(record);
            default -> OffsetSync.deserializeRecord(record);
        };
    }

    /** What each upstream offset becomes for a checkpoint task that has read these syncs, in their order. */
    static String translate(String syncs, String offsets) {
        TopicPartition place = new TopicPartition("any", 0);
        try (OffsetSyncStore store = new OffsetSyncStore() {
            @Override
            void backingStoreStart() {
                for (String sync : syncs.isEmpty() ? new String[0] : syncs.split(",")) {
                    String[] pair = sync.split(":");
                    OffsetSync made = new OffsetSync(place, number(pair[0]), number(pair[1]));
                    handleRecord(new ConsumerRecord<>("any", 0, 0, made.recordKey(), made.recordValue()));
                }
            }
        }) {
            store.start(false);
            return Arrays.stream(offsets.split(",")).map(offset -> {
                OptionalLong found = store.translateDownstream("any", place, number(offset));
                return found.isPresent() ? Long.toString(found.getAsLong()) : "none";
            }).collect(Collectors.joining(","));
        }
    }

    static String names(ReplicationPolicy policy, String alias) {
        return String.join(" ", text(policy.heartbeatsTopic()), text(policy.checkpointsTopic(alias)),
            text(policy.offsetSyncsTopic(alias)));
    }

    static ReplicationPolicy policy(String name, String separator, String internal) throws Exception {
        ReplicationPolicy policy = (ReplicationPolicy) Class.forName("org.apache.kafka.connect.mirror." + name)
            .getDeclaredConstructor().newInstance();
        ((org.apache.kafka.common.Configurable) policy).configure(Map.of(
            "source.cluster.alias", "unused", "replication.policy.separator", separator,
            "replication.policy.internal.topic.separator.enabled", internal));
        return policy;
    }

    /** client BOOTSTRAP POLICY SOURCE-ALIAS QUESTION ... */
    static String client(String[] words) throws Exception {
        Map<String, Object> properties = new HashMap<>(Map.of("bootstrap.servers", words[1],
            "replication.policy.class", "org.apache.kafka.connect.mirror." + words[2], "source.cluster.alias", words[3]));
        switch (words[4]) {
            case "RemoteClusterUtils.heartbeatTopics":
                return sorted(RemoteClusterUtils.heartbeatTopics(properties));
            case "RemoteClusterUtils.checkpointTopics":
                return sorted(RemoteClusterUtils.checkpointTopics(properties));
            case "RemoteClusterUtils.upstreamClusters":
                return sorted(RemoteClusterUtils.upstreamClusters(properties));
            case "RemoteClusterUtils.replicationHops":
                return text(Integer.toString(RemoteClusterUtils.replicationHops(properties, words[5])));
            case "RemoteClusterUtils.translateOffsets":
                return offsets(RemoteClusterUtils.translateOffsets(properties, words[5], decoded(words[6]), PATIENCE));
        }
        try (MirrorClient client = new MirrorClient(properties)) {
            return switch (words[4]) {
                case "heartbeatTopics" -> sorted(client.heartbeatTopics());
                case "checkpointTopics" -> sorted(client.checkpointTopics());
                case "upstreamClusters" -> sorted(client.upstreamClusters());
                case "remoteTopics" -> sorted(client.remoteTopics(words[5]));
                case "replicationHops" -> text(Integer.toString(client.replicationHops(words[5])));
                case "remoteConsumerOffsets" ->
                    offsets(client.remoteConsumerOffsets(decoded(words[6]), words[5], PATIENCE));
                default -> throw new IllegalArgumentException(words[4]);
            };
        }
    }

    static String offsets(Map<TopicPartition, OffsetAndMetadata> found) {
        Map<String, String> lines = new TreeMap<>();
        found.forEach((place, offset) ->
            lines.put(place.topic() + " " + place.partition(), offset.offset() + " " + offset.metadata()));
        return lines.entrySet().stream().map(line -> text(line.getKey() + " " + line.getValue()))
            .collect(Collectors.joining(" "));
    }

    static String sorted(Collection<String> names) {
        return new TreeSet<>(names).stream().map(MirrorOracle::text).collect(Collectors.joining(" "));
    }

    static TopicPartition place(String[] words, int at) {
        return new TopicPartition(decoded(words[at]), Integer.parseInt(words[at + 1]));
    }

    static long number(String word) {
        return Long.parseLong(word);
    }

    static String decoded(String word) {
        return new String(HexFormat.of().parseHex(word.substring(1)), StandardCharsets.UTF_8);
    }

    static String text(String text) {
        return "=" + bytes(text.getBytes(StandardCharsets.UTF_8));
    }

    static String bytes(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
