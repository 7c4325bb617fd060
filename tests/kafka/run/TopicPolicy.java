import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** Refuses topics with "forbidden" in their names, and a segment.ms of 1234 on any. */
public class TopicPolicy implements CreateTopicPolicy, AlterConfigPolicy {
    @Override
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        if (request.topic().contains("forbidden")) {
            throw new PolicyViolationException("ask the platform team for names like this");
        }
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata request) {
        if ("1234".equals(request.configs().get("segment.ms"))) {
            throw new PolicyViolationException("segments are at least a minute long here");
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void close() {}
}
