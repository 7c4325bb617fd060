import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;

/** Message sets of the formats v0 and v1, written and read by Kafka 3.9's own classes; one JSON object a line. */
class OldFormats {
    private static final long TIME = 1_700_000_000_000L;

    public static void main(String[] arguments) {
        for (byte magic = 0; magic <= 1; magic++)
            for (CompressionType codec : new CompressionType[] {
                    CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4})
                for (TimestampType type : magic == 0
                        ? new TimestampType[] {TimestampType.CREATE_TIME}
                        : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME})
                    print(magic, codec, type);
    }

    private static void print(byte magic, CompressionType codec, TimestampType type) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic,
            Compression.of(codec).build(), type, 100, type == TimestampType.LOG_APPEND_TIME ? TIME + 9 : -1);
        // Offset 102 is missing, as the log cleaner leaves it.
        append(builder, 100, TIME, "key", "value");
        append(builder, 101, TIME + 5, null, "no key");
        append(builder, 103, TIME + 3, "tombstone", null);
        append(builder, 104, -1, "", "");
        append(builder, 105, TIME + 1_000_000_000L, "large", "large ".repeat(100));
        MemoryRecords records = builder.build();
        StringBuilder rows = new StringBuilder();
        for (MutableRecordBatch batch : records.batches())
            for (Record record : batch)
                rows.append(rows.length() == 0 ? "" : ",").append(String.format("[%d,%d,%s,%s]",
                    record.offset(), record.timestamp(), hex(record.key()), hex(record.value())));
        byte[] bytes = new byte[records.buffer().remaining()];
        records.buffer().duplicate().get(bytes);
        System.out.printf("{\"name\":\"v%d-%s-%s\",\"bytes\":\"%s\",\"rows\":[%s]}%n", magic, codec.name,
            type == TimestampType.LOG_APPEND_TIME ? "append" : "create", HexFormat.of().formatHex(bytes), rows);
    }

    private static void append(MemoryRecordsBuilder builder, long offset, long time, String key, String value) {
        builder.appendWithOffset(offset, builder.magic() == 0 ? -1 : time, bytes(key), bytes(value));
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String hex(ByteBuffer data) {
        if (data == null)
            return "null";
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return "\"" + HexFormat.of().formatHex(bytes) + "\"";
    }
}
