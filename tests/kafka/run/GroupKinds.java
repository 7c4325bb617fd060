import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group (KIP-932) and one of a Streams group (KIP-1071) on one topic of a cluster of one broker. Says
 * "joined" when the broker has taken both, and leaves with the end of its input. The Streams member is a heartbeat alone:
 * the Streams library is more than a group needs to be there.
 */
public class GroupKinds {
    static final short VERSION = 0;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1], share = args[2], streams = args[3];
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", share);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(config, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            consumer.poll(Duration.ofMillis(500));
            Errors said = beat(bootstrap, topic, streams);
            while (said == Errors.COORDINATOR_NOT_AVAILABLE || said == Errors.COORDINATOR_LOAD_IN_PROGRESS) {
                consumer.poll(Duration.ofMillis(100));
                said = beat(bootstrap, topic, streams);
            }
            if (said != Errors.NONE) {
                throw said.exception();
            }
            System.out.println("joined");
            while (System.in.available() == 0) {
                consumer.poll(Duration.ofMillis(200));
            }
        }
    }

    static Errors beat(String bootstrap, String topic, String group) throws Exception {
        Subtopology reads = new Subtopology().setSubtopologyId("0").setSourceTopics(List.of(topic));
        StreamsGroupHeartbeatRequestData data = new StreamsGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(Uuid.randomUuid().toString()).setMemberEpoch(0).setRebalanceTimeoutMs(30_000)
            .setProcessId("p").setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of())
            .setClientTags(List.of()).setTopology(new Topology().setEpoch(0).setSubtopologies(List.of(reads)));
        RequestHeader header = new RequestHeader(ApiKeys.STREAMS_GROUP_HEARTBEAT, VERSION, "kinds", 1);
        ByteBuffer sent = new StreamsGroupHeartbeatRequest(data, VERSION).serializeWithHeader(header);
        String[] address = bootstrap.split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(sent.remaining());
            out.write(sent.array(), sent.arrayOffset() + sent.position(), sent.remaining());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            ResponseHeader.parse(answer, ApiKeys.STREAMS_GROUP_HEARTBEAT.responseHeaderVersion(VERSION));
            return Errors.forCode(StreamsGroupHeartbeatResponse.parse(new ByteBufferAccessor(answer), VERSION).data().errorCode());
        }
    }
}
