import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The reader over Kafka's own client; tests/clients/reader_contract.py says what it does. */
public final class Reader {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long DEADLINE_MS = 60_000;

    /** What was read of one partition. */
    private static final class PartitionRead {
        private final MessageDigest sha256;
        private long count = 0;
        private long firstOffset = -1;
        private long lastOffset = -1;

        PartitionRead() throws Exception {
            sha256 = MessageDigest.getInstance("SHA-256");
        }

        void add(ConsumerRecord<byte[], byte[]> record) {
            firstOffset = count == 0 ? record.offset() : firstOffset;
            lastOffset = record.offset();
            count++;
            ByteBuffer numbers = ByteBuffer.allocate(16);
            sha256.update(numbers.putLong(record.offset()).putLong(record.timestamp()).array());
            updateSized(record.key());
            updateSized(record.value());
            Header[] headers = record.headers().toArray();
            updateInt(headers.length);
            for (Header header : headers) {
                updateSized(header.key().getBytes(StandardCharsets.UTF_8));
                updateSized(header.value());
            }
        }

        String toJson() {
            return String.format(
                "{\"count\": %d, \"first_offset\": %d, \"last_offset\": %d, \"digest\": \"%s\"}",
                count, firstOffset, lastOffset, HexFormat.of().formatHex(sha256.digest()));
        }

        private void updateSized(byte[] content) {
            updateInt(content == null ? -1 : content.length);
            sha256.update(content == null ? new byte[0] : content);
        }

        private void updateInt(int value) {
            sha256.update(ByteBuffer.allocate(4).putInt(value).array());
        }
    }

    private final Map<String, String> arguments;
    private final String start;
    private final Map<Integer, PartitionRead> reads = new TreeMap<>();
    private long count = 0;

    private Reader(Map<String, String> arguments) {
        this.arguments = arguments;
        this.start = arguments.get("start");
    }

    public static void main(String[] given) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        for (String argument : given) {
            String[] nameAndValue = argument.split("=", 2);
            arguments.put(nameAndValue[0], nameAndValue[1]);
        }
        new Reader(arguments).read();
    }

    private void read() throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(arguments.get("topic"))
                .forEach(each -> partitions.add(new TopicPartition(each.topic(), each.partition())));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            assign(consumer, partitions, ends);
            readTo(consumer, ends);
        }
        List<String> members = new ArrayList<>();
        reads.forEach((number, read) -> members.add("\"" + number + "\": " + read.toJson()));
        System.out.println("{" + String.join(", ", members) + "}");
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments.get("bootstrap"));
        properties.put("key.deserializer", ByteArrayDeserializer.class);
        properties.put("value.deserializer", ByteArrayDeserializer.class);
        properties.put("auto.offset.reset", "none");
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", arguments.get("isolation"));
        properties.put("client.rack", arguments.get("rack"));
        properties.put("max.partition.fetch.bytes", arguments.get("fetch_bytes"));
        properties.put("max.poll.records", "10");
        if (start.startsWith("group:")) {
            properties.put("group.id", start.substring("group:".length()));
        }
        return properties;
    }

    private void assign(
            KafkaConsumer<byte[], byte[]> consumer,
            List<TopicPartition> partitions,
            Map<TopicPartition, Long> ends) {
        if (start.startsWith("group:")) {
            consumer.subscribe(List.of(arguments.get("topic")));
            return;
        }
        consumer.assign(partitions);
        if (start.startsWith("time:")) {
            long timeMs = Long.parseLong(start.substring("time:".length()));
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions.forEach(each -> times.put(each, timeMs));
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(times);
            partitions.forEach(each -> {
                OffsetAndTimestamp at = found.get(each);
                consumer.seek(each, at == null ? ends.get(each) : at.offset());
            });
        } else {
            consumer.beginningOffsets(partitions).forEach(consumer::seek);
        }
    }

    private void readTo(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends)
            throws Exception {
        long pause = Long.parseLong(arguments.get("pause"));
        long deadlineMs = System.currentTimeMillis() + DEADLINE_MS;
        while (!isAt(consumer, ends)) {
            if (System.currentTimeMillis() > deadlineMs) {
                throw new IllegalStateException("read " + count + " records, ends " + ends);
            }
            long before = count;
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                PartitionRead read = reads.get(record.partition());
                if (read == null) {
                    read = new PartitionRead();
                    reads.put(record.partition(), read);
                }
                read.add(record);
                count++;
            }
            if (before < pause && pause <= count) {
                System.out.println("{\"paused\": " + count + "}");
                System.in.read();
                deadlineMs = System.currentTimeMillis() + DEADLINE_MS;
            }
        }
    }

    private static boolean isAt(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
        return consumer.assignment().containsAll(ends.keySet())
            && ends.entrySet().stream()
                .allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }
}
