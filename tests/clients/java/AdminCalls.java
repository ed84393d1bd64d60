import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.std.ToStringSerializer;
import com.fasterxml.jackson.datatype.jdk8.Jdk8Module;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;

/** The calls of user interfaces over Kafka's own clients; see tests/clients/admin_calls.py. */
public final class AdminCalls {
    private static final ObjectMapper JSON = new ObjectMapper()
        .setVisibility(PropertyAccessor.ALL, Visibility.NONE)
        .setVisibility(PropertyAccessor.FIELD, Visibility.ANY)
        .disable(SerializationFeature.FAIL_ON_EMPTY_BEANS)
        .registerModule(new Jdk8Module())
        .registerModule(new SimpleModule()
            .addSerializer(Node.class, new NodeSerializer())
            .addSerializer(Throwable.class, new ErrorSerializer())
            .addSerializer(Set.class, new SortedSerializer())
            .addSerializer(Uuid.class, ToStringSerializer.instance)
            .addSerializer(TopicPartition.class, ToStringSerializer.instance));

    private static final class NodeSerializer extends JsonSerializer<Node> {
        @Override
        public void serialize(Node node, JsonGenerator json, SerializerProvider all)
                throws IOException {
            json.writePOJO(new TreeMap<>(Map.of(
                "id", node.id(), "host", node.host(), "port", node.port(),
                "rack", String.valueOf(node.rack()), "fenced", node.isFenced())));
        }
    }

    private static final class ErrorSerializer extends JsonSerializer<Throwable> {
        @Override
        public void serialize(Throwable error, JsonGenerator json, SerializerProvider all)
                throws IOException {
            json.writeString(error.getClass().getSimpleName() + ": " + error.getMessage());
        }
    }

    @SuppressWarnings("rawtypes")
    private static final class SortedSerializer extends JsonSerializer<Set> {
        @Override
        public void serialize(Set members, JsonGenerator json, SerializerProvider all)
                throws IOException {
            TreeSet<String> sorted = new TreeSet<>();
            for (Object member : members) {
                sorted.add(JSON.writeValueAsString(member));
            }
            json.writeRawValue("[" + String.join(",", sorted) + "]");
        }
    }

    private final Map<String, String> arguments;
    private final String address;
    private final Admin admin;
    private final String scratch;
    private final Set<String> topics;
    private final List<String> groups;
    private final Map<String, Object> answers = new TreeMap<>();

    private AdminCalls(Map<String, String> arguments, String address, Admin admin) {
        this.arguments = arguments;
        this.address = address;
        this.admin = admin;
        this.scratch = arguments.get("scratch");
        this.topics = new TreeSet<>(
            List.of(arguments.get("tiered"), arguments.get("whole"), arguments.get("written")));
        this.groups = List.of(arguments.get("groups").split(","));
    }

    public static void main(String[] given) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        for (String argument : given) {
            String[] nameAndValue = argument.split("=", 2);
            arguments.put(nameAndValue[0], nameAndValue[1]);
        }
        for (String address : arguments.get("addresses").split(",")) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
                AdminCalls calls = new AdminCalls(arguments, address, admin);
                calls.deleteRecords();
                calls.describeCluster();
                calls.describeTopics();
                calls.listOffsets();
                calls.describeGroups();
                calls.describeTransactions();
                calls.changeTopics();
                calls.changeGroups();
                calls.changeSecurity();
                calls.consume();
                System.out.println(JSON.writeValueAsString(calls.answers));
            }
        }
    }

    /** Keep a call's result, or its error. */
    private void call(String name, Callable<KafkaFuture<?>> call) throws Exception {
        try {
            answers.put(name, call.call().get(30, TimeUnit.SECONDS));
        } catch (ExecutionException failed) {
            answers.put(name, failed.getCause());
        } catch (KafkaException failed) {
            answers.put(name, failed);
        }
    }

    /** Wait until the broker has applied a change that the controller has accepted. */
    private static void await(Callable<Boolean> isApplied) throws Exception {
        long deadlineMs = System.currentTimeMillis() + 30_000;
        while (!isApplied.call()) {
            if (System.currentTimeMillis() > deadlineMs) {
                throw new IllegalStateException("the broker has not applied a change");
            }
            Thread.sleep(20);
        }
    }

    private void describeCluster() throws Exception {
        DescribeClusterResult cluster =
            admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        call("describeCluster.clusterId", cluster::clusterId);
        call("describeCluster.controller", cluster::controller);
        call("describeCluster.nodes", cluster::nodes);
        call("describeCluster.authorizedOperations", cluster::authorizedOperations);
        call("describeFeatures", () -> admin.describeFeatures().featureMetadata());
        call("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo());
        List<Integer> brokers = new ArrayList<>();
        cluster.nodes().get().forEach(node -> brokers.add(node.id()));
        call("describeConfigs.broker",
            () -> configs(ConfigResource.Type.BROKER, String.valueOf(brokers.get(0))));
        call("listConfigResources", () -> admin.listConfigResources().all().thenApply(Set::copyOf));
        call("listClientMetricsResources", this::clientMetrics);
        call("describeLogDirs",
            () -> admin.describeLogDirs(brokers).allDescriptions().thenApply(this::ofTopics));
        TopicPartitionReplica replica =
            new TopicPartitionReplica(arguments.get("tiered"), 0, brokers.get(0));
        call("describeReplicaLogDirs",
            () -> admin.describeReplicaLogDirs(List.of(replica)).all());
    }

    @SuppressWarnings("removal")
    private KafkaFuture<?> clientMetrics() {
        return admin.listClientMetricsResources().all().thenApply(Set::copyOf);
    }

    private KafkaFuture<?> configs(ConfigResource.Type type, String name) {
        DescribeConfigsOptions options =
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(List.of(new ConfigResource(type, name)), options).all();
    }

    /** The logs of the given topics; those of internal topics grow meanwhile. */
    private Map<String, Object> ofTopics(Map<Integer, Map<String, LogDirDescription>> brokers) {
        Map<String, Object> found = new TreeMap<>();
        brokers.forEach((broker, directories) -> directories.forEach((directory, description) -> {
            found.put(directory, String.valueOf(description.error()));
            description.replicaInfos().forEach((partition, replica) -> {
                if (topics.contains(partition.topic())) {
                    found.put(directory + "/" + partition, replica);
                }
            });
        }));
        return found;
    }

    private void describeTopics() throws Exception {
        DescribeTopicsOptions options =
            new DescribeTopicsOptions().includeAuthorizedOperations(true);
        ListTopicsOptions internal = new ListTopicsOptions().listInternal(true);
        call("listTopics", () -> admin.listTopics().namesToListings());
        call("listTopics.internal", () -> admin.listTopics(internal).namesToListings());
        Map<String, TopicDescription> described =
            admin.describeTopics(topics, options).allTopicNames().get();
        answers.put("describeTopics", described);
        List<Uuid> ids = new ArrayList<>();
        described.values().forEach(topic -> ids.add(topic.topicId()));
        call("describeTopics.byId",
            () -> admin.describeTopics(TopicCollection.ofTopicIds(ids), options).allTopicIds());
        call("describeTopics.unknown",
            () -> admin.describeTopics(List.of(scratch)).allTopicNames());
        call("describeConfigs.topic",
            () -> configs(ConfigResource.Type.TOPIC, arguments.get("tiered")));
        call("describeProducers", () -> admin.describeProducers(partitions()).all());
        call("listPartitionReassignments",
            () -> admin.listPartitionReassignments().reassignments());
        call("electLeaders",
            () -> admin.electLeaders(ElectionType.PREFERRED, partitions()).partitions());
    }

    private Set<TopicPartition> partitions() {
        return Set.copyOf(partitionsInOrder());
    }

    private List<TopicPartition> partitionsInOrder() {
        List<TopicPartition> found = new ArrayList<>();
        topics.forEach(topic -> found.add(new TopicPartition(topic, 0)));
        return found;
    }

    /** Deletes the first record of the written topic, and nothing of the tiered one. */
    private void deleteRecords() throws Exception {
        Map<String, Long> offsets =
            Map.of(arguments.get("tiered"), 0L, arguments.get("written"), 1L);
        for (Map.Entry<String, Long> topic : offsets.entrySet()) {
            TopicPartition partition = new TopicPartition(topic.getKey(), 0);
            Map<TopicPartition, RecordsToDelete> asked =
                Map.of(partition, RecordsToDelete.beforeOffset(topic.getValue()));
            call("deleteRecords." + topic.getKey(),
                () -> admin.deleteRecords(asked).lowWatermarks().get(partition));
        }
    }

    private void listOffsets() throws Exception {
        Map<String, OffsetSpec> questions = Map.of(
            "earliest", OffsetSpec.earliest(),
            "latest", OffsetSpec.latest(),
            "maxTimestamp", OffsetSpec.maxTimestamp(),
            "timestamp", OffsetSpec.forTimestamp(Long.parseLong(arguments.get("time_ms"))),
            "earliestLocal", OffsetSpec.earliestLocal(),
            "latestTiered", OffsetSpec.latestTiered(),
            "earliestPendingUpload", OffsetSpec.earliestPendingUpload());
        for (Map.Entry<String, OffsetSpec> question : questions.entrySet()) {
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            partitions().forEach(each -> asked.put(each, question.getValue()));
            call("listOffsets." + question.getKey(), () -> admin.listOffsets(asked).all());
        }
    }

    private void describeGroups() throws Exception {
        call("listGroups", () -> admin.listGroups().all().thenApply(Set::copyOf));
        call("listConsumerGroups", this::consumerGroups);
        DescribeConsumerGroupsOptions options =
            new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true);
        call("describeConsumerGroups", () -> admin.describeConsumerGroups(groups, options).all());
        Map<String, ListConsumerGroupOffsetsSpec> all = new HashMap<>();
        groups.forEach(group -> all.put(group, new ListConsumerGroupOffsetsSpec()));
        call("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets(all).all());
    }

    @SuppressWarnings({"deprecation", "removal"})
    private KafkaFuture<?> consumerGroups() {
        return admin.listConsumerGroups().all().thenApply(Set::copyOf);
    }

    private void describeTransactions() throws Exception {
        call("listTransactions", () -> admin.listTransactions().all().thenApply(Set::copyOf));
        call("describeTransactions",
            () -> admin.describeTransactions(List.of(arguments.get("transaction"))).all());
    }

    private void changeTopics() throws Exception {
        List<NewTopic> created = List.of(
            new NewTopic(scratch, 1, (short) 1).configs(Map.of("segment.bytes", "2000000")));
        CreateTopicsOptions validate = new CreateTopicsOptions().validateOnly(true);
        call("createTopics.validateOnly",
            () -> admin.createTopics(created, validate).config(scratch));
        call("createTopics", () -> admin.createTopics(created).config(scratch));
        call("createTopics.again", () -> admin.createTopics(created).all());
        call("createPartitions",
            () -> admin.createPartitions(Map.of(scratch, NewPartitions.increaseTo(2))).all());
        call("incrementalAlterConfigs", () -> alterConfig(scratch, "retention.ms", false));
        for (String name : List.of("retention.ms", "retention.bytes", "max.message.bytes")) {
            call("incrementalAlterConfigs.tiered." + name,
                () -> alterConfig(arguments.get("tiered"), name, true));
        }
        call("deleteTopics", () -> admin.deleteTopics(List.of(scratch)).all());
        await(() -> !admin.listTopics().names().get().contains(scratch));
        call("deleteTopics.again", () -> admin.deleteTopics(List.of(scratch)).all());
    }

    private KafkaFuture<?> alterConfig(String topic, String name, boolean validateOnly) {
        AlterConfigOp set =
            new AlterConfigOp(new ConfigEntry(name, "1000000"), AlterConfigOp.OpType.SET);
        return admin.incrementalAlterConfigs(
            Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), List.of(set)),
            new AlterConfigsOptions().validateOnly(validateOnly)).all();
    }

    private void changeGroups() throws Exception {
        TopicPartition partition = new TopicPartition(arguments.get("tiered"), 0);
        Map<TopicPartition, OffsetAndMetadata> offsets =
            Map.of(partition, new OffsetAndMetadata(3, "reset"));
        call("alterConsumerGroupOffsets",
            () -> admin.alterConsumerGroupOffsets(scratch, offsets).all());
        call("alterConsumerGroupOffsets.active",
            () -> admin.alterConsumerGroupOffsets(groups.get(0), offsets).all());
        call("listConsumerGroupOffsets.altered",
            () -> admin.listConsumerGroupOffsets(scratch).partitionsToOffsetAndMetadata());
        call("deleteConsumerGroupOffsets",
            () -> admin.deleteConsumerGroupOffsets(scratch, Set.of(partition)).all());
        call("listConsumerGroupOffsets.deleted",
            () -> admin.listConsumerGroupOffsets(scratch).partitionsToOffsetAndMetadata());
        // Without offsets and members the broker may have removed the group by itself.
        admin.alterConsumerGroupOffsets(scratch, offsets).all().get();
        call("deleteConsumerGroups",
            () -> admin.deleteConsumerGroups(List.of(scratch)).all());
        call("deleteConsumerGroups.active",
            () -> admin.deleteConsumerGroups(List.of(groups.get(0))).all());
    }

    private void changeSecurity() throws Exception {
        // Not the name of a topic that is created: nobody else may use a topic with an ACL.
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, scratch + "-acl", PatternType.LITERAL),
            new AccessControlEntry(
                "User:" + scratch, "*", AclOperation.READ, AclPermissionType.ALLOW));
        call("createAcls", () -> admin.createAcls(List.of(binding)).all());
        AclBindingFilter ours = binding.toFilter();
        await(() -> !admin.describeAcls(ours).values().get().isEmpty());
        call("describeAcls",
            () -> admin.describeAcls(AclBindingFilter.ANY).values().thenApply(Set::copyOf));
        call("deleteAcls", () -> admin.deleteAcls(List.of(ours)).all());
        await(() -> admin.describeAcls(ours).values().get().isEmpty());
        call("alterClientQuotas", () -> quota(1000.0));
        ClientQuotaFilter every = ClientQuotaFilter.all();
        await(() -> !admin.describeClientQuotas(every).entities().get().isEmpty());
        call("describeClientQuotas", () -> admin.describeClientQuotas(every).entities());
        call("alterClientQuotas.removed", () -> quota(null));
        await(() -> admin.describeClientQuotas(every).entities().get().isEmpty());
        ScramCredentialInfo kind = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        call("alterUserScramCredentials", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialUpsertion(scratch, kind, "password"))).all());
        await(() -> admin.describeUserScramCredentials().users().get().contains(scratch));
        call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all());
        call("alterUserScramCredentials.removed", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialDeletion(scratch, kind.mechanism()))).all());
        await(() -> admin.describeUserScramCredentials().users().get().isEmpty());
        call("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens());
    }

    private KafkaFuture<?> quota(Double rate) {
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, scratch));
        return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            user, List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", rate))))).all();
    }

    /** What browsers of records and monitors of lag call. */
    private void consume() {
        Map<String, Object> properties = Map.of(
            "bootstrap.servers", address, "auto.offset.reset", "none",
            "enable.auto.commit", false, "group.id", groups.get(0),
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            answers.put("consumer.listTopics", consumer.listTopics());
            answers.put("consumer.beginningOffsets", consumer.beginningOffsets(partitions()));
            answers.put("consumer.endOffsets", consumer.endOffsets(partitions()));
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions().forEach(
                each -> times.put(each, Long.parseLong(arguments.get("time_ms"))));
            answers.put("consumer.offsetsForTimes", consumer.offsetsForTimes(times));
            answers.put("consumer.committed", consumer.committed(partitions()));
            for (TopicPartition partition : partitionsInOrder()) {
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                answers.put("consumer.firstRecord." + partition.topic(), firstRecord(consumer));
            }
        }
    }

    private static Object firstRecord(KafkaConsumer<String, String> consumer) {
        long deadlineMs = System.currentTimeMillis() + 30_000;
        while (System.currentTimeMillis() < deadlineMs) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                return List.of(record.offset(), record.timestamp(), record.value());
            }
        }
        return "none";
    }
}
