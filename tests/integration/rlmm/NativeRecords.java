import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.HexFormat;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.log.remote.metadata.storage.generated.*;
import org.apache.kafka.server.common.serialization.BytesApiMessageSerde;

/** Prints random records of Kafka's remote log metadata: type, tab, JSON, tab, value in hex. */
public final class NativeRecords {
    private static final class Serde extends BytesApiMessageSerde {
        @Override
        public ApiMessage apiMessageFor(short apiKey) {
            return MetadataRecordType.fromId(apiKey).newMetadataRecord();
        }
    }

    private static final Serde SERDE = new Serde();
    private final Random random;

    private NativeRecords(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] arguments) {
        var records = new NativeRecords(Long.parseLong(arguments[0]));
        int count = Integer.parseInt(arguments[1]);
        for (int i = 0; i < count; i++) {
            records.print();
        }
    }

    private void print() {
        var segment = segment();
        show("0", segment, RemoteLogSegmentMetadataRecordJsonConverter.write(segment, (short) 0));
        var update = new RemoteLogSegmentMetadataUpdateRecord()
            .setRemoteLogSegmentId(new RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry()
                .setTopicIdPartition(new RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry()
                    .setName(name()).setId(Uuid.randomUuid()).setPartition(random.nextInt(1000)))
                .setId(Uuid.randomUuid()))
            .setBrokerId(random.nextInt()).setEventTimestampMs(random.nextLong())
            .setCustomMetadata(bytes()).setRemoteLogSegmentState((byte) random.nextInt(4));
        show("1", update,
            RemoteLogSegmentMetadataUpdateRecordJsonConverter.write(update, (short) 0));
        var delete = new RemotePartitionDeleteMetadataRecord()
            .setTopicIdPartition(new RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry()
                .setName(name()).setId(Uuid.randomUuid()).setPartition(random.nextInt(1000)))
            .setBrokerId(random.nextInt()).setEventTimestampMs(random.nextLong())
            .setRemotePartitionDeleteState((byte) random.nextInt(3));
        show("2", delete,
            RemotePartitionDeleteMetadataRecordJsonConverter.write(delete, (short) 0));
        var snapshot = snapshot();
        show("3", snapshot,
            RemoteLogSegmentMetadataSnapshotRecordJsonConverter.write(snapshot, (short) 0));
    }

    private RemoteLogSegmentMetadataRecord segment() {
        List<RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry> epochs = new ArrayList<>();
        for (int i = random.nextInt(200); i > 0; i--) {
            epochs.add(new RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry()
                .setLeaderEpoch(random.nextInt()).setOffset(random.nextLong()));
        }
        return new RemoteLogSegmentMetadataRecord()
            .setRemoteLogSegmentId(new RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry()
                .setTopicIdPartition(new RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry()
                    .setName(name()).setId(Uuid.randomUuid()).setPartition(random.nextInt(1000)))
                .setId(Uuid.randomUuid()))
            .setStartOffset(random.nextLong()).setEndOffset(random.nextLong())
            .setBrokerId(random.nextInt()).setMaxTimestampMs(random.nextLong())
            .setEventTimestampMs(random.nextLong()).setSegmentLeaderEpochs(epochs)
            .setSegmentSizeInBytes(random.nextInt()).setCustomMetadata(bytes())
            .setRemoteLogSegmentState((byte) random.nextInt(4))
            .setTxnIndexEmpty(random.nextBoolean());
    }

    private RemoteLogSegmentMetadataSnapshotRecord snapshot() {
        List<RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry> epochs =
            new ArrayList<>();
        for (int i = random.nextInt(3); i > 0; i--) {
            epochs.add(new RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry()
                .setLeaderEpoch(random.nextInt()).setOffset(random.nextLong()));
        }
        return new RemoteLogSegmentMetadataSnapshotRecord()
            .setSegmentId(Uuid.randomUuid())
            .setStartOffset(random.nextLong()).setEndOffset(random.nextLong())
            .setBrokerId(random.nextInt()).setMaxTimestampMs(random.nextLong())
            .setEventTimestampMs(random.nextLong()).setSegmentLeaderEpochs(epochs)
            .setSegmentSizeInBytes(random.nextInt()).setCustomMetadata(bytes())
            .setRemoteLogSegmentState((byte) random.nextInt(4))
            .setTxnIndexEmpty(random.nextBoolean());
    }

    private String name() {
        return random.nextInt(10) == 0 ? "t".repeat(249) : "orders-" + random.nextInt();
    }

    private byte[] bytes() {
        if (random.nextBoolean()) {
            return null;
        }
        byte[] content = new byte[random.nextInt(300)];
        random.nextBytes(content);
        return content;
    }

    private static void show(String type, ApiMessage record, Object json) {
        byte[] value = SERDE.serialize(new ApiMessageAndVersion(record, (short) 0));
        System.out.println(type + "\t" + json + "\t" + HexFormat.of().formatHex(value));
    }
}
