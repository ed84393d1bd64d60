"""Lists every API that a broker of Kafka 4.3.1 serves to clients, with its versions.

A proxy offers no other APIs or versions to clients of a newer broker: they may carry fields that
the proxy must change. Source: kafka-clients' request schemas (`listeners`, `validVersions`,
`flexibleVersions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rlm.wire.schema import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerApi:
    """Represents an API; `rlm` may lack tables of its messages."""

    key: int
    name: str
    versions: Versions
    flexible: Versions


def _api(key: int, name: str, versions: str, flexible: str) -> tuple[int, BrokerApi]:
    api = BrokerApi(
        key=key, name=name, versions=Versions.parse(versions), flexible=Versions.parse(flexible)
    )
    return key, api


BROKER_APIS: Mapping[int, BrokerApi] = MappingProxyType(
    dict(
        (
            _api(0, "Produce", "3-13", "9+"),
            _api(1, "Fetch", "4-18", "12+"),
            _api(2, "ListOffsets", "1-11", "6+"),
            _api(3, "Metadata", "0-13", "9+"),
            _api(8, "OffsetCommit", "2-10", "8+"),
            _api(9, "OffsetFetch", "1-10", "6+"),
            _api(10, "FindCoordinator", "0-6", "3+"),
            _api(11, "JoinGroup", "0-9", "6+"),
            _api(12, "Heartbeat", "0-4", "4+"),
            _api(13, "LeaveGroup", "0-5", "4+"),
            _api(14, "SyncGroup", "0-5", "4+"),
            _api(15, "DescribeGroups", "0-6", "5+"),
            _api(16, "ListGroups", "0-5", "3+"),
            _api(17, "SaslHandshake", "0-1", "none"),
            _api(18, "ApiVersions", "0-4", "3+"),
            _api(19, "CreateTopics", "2-7", "5+"),
            _api(20, "DeleteTopics", "1-6", "4+"),
            _api(21, "DeleteRecords", "0-2", "2+"),
            _api(22, "InitProducerId", "0-6", "2+"),
            _api(23, "OffsetForLeaderEpoch", "2-4", "4+"),
            _api(24, "AddPartitionsToTxn", "0-5", "3+"),
            _api(25, "AddOffsetsToTxn", "0-4", "3+"),
            _api(26, "EndTxn", "0-5", "3+"),
            _api(27, "WriteTxnMarkers", "1-2", "1+"),
            _api(28, "TxnOffsetCommit", "0-5", "3+"),
            _api(29, "DescribeAcls", "1-3", "2+"),
            _api(30, "CreateAcls", "1-3", "2+"),
            _api(31, "DeleteAcls", "1-3", "2+"),
            _api(32, "DescribeConfigs", "1-4", "4+"),
            _api(33, "AlterConfigs", "0-2", "2+"),
            _api(34, "AlterReplicaLogDirs", "1-2", "2+"),
            _api(35, "DescribeLogDirs", "1-5", "2+"),
            _api(36, "SaslAuthenticate", "0-2", "2+"),
            _api(37, "CreatePartitions", "0-3", "2+"),
            _api(38, "CreateDelegationToken", "1-3", "2+"),
            _api(39, "RenewDelegationToken", "1-2", "2+"),
            _api(40, "ExpireDelegationToken", "1-2", "2+"),
            _api(41, "DescribeDelegationToken", "1-3", "2+"),
            _api(42, "DeleteGroups", "0-2", "2+"),
            _api(43, "ElectLeaders", "0-2", "2+"),
            _api(44, "IncrementalAlterConfigs", "0-1", "1+"),
            _api(45, "AlterPartitionReassignments", "0-1", "0+"),
            _api(46, "ListPartitionReassignments", "0", "0+"),
            _api(47, "OffsetDelete", "0", "none"),
            _api(48, "DescribeClientQuotas", "0-1", "1+"),
            _api(49, "AlterClientQuotas", "0-1", "1+"),
            _api(50, "DescribeUserScramCredentials", "0", "0+"),
            _api(51, "AlterUserScramCredentials", "0", "0+"),
            _api(55, "DescribeQuorum", "0-2", "0+"),
            _api(57, "UpdateFeatures", "0-2", "0+"),
            _api(60, "DescribeCluster", "0-2", "0+"),
            _api(61, "DescribeProducers", "0", "0+"),
            _api(64, "UnregisterBroker", "0", "0+"),
            _api(65, "DescribeTransactions", "0", "0+"),
            _api(66, "ListTransactions", "0-2", "0+"),
            _api(68, "ConsumerGroupHeartbeat", "0-1", "0+"),
            _api(69, "ConsumerGroupDescribe", "0-1", "0+"),
            _api(71, "GetTelemetrySubscriptions", "0", "0+"),
            _api(72, "PushTelemetry", "0", "0+"),
            _api(74, "ListConfigResources", "0-1", "0+"),
            _api(75, "DescribeTopicPartitions", "0", "0+"),
            _api(76, "ShareGroupHeartbeat", "1", "0+"),
            _api(77, "ShareGroupDescribe", "1", "0+"),
            _api(78, "ShareFetch", "1-2", "0+"),
            _api(79, "ShareAcknowledge", "1-2", "0+"),
            _api(80, "AddRaftVoter", "0-1", "0+"),
            _api(81, "RemoveRaftVoter", "0", "0+"),
            _api(83, "InitializeShareGroupState", "0", "0+"),
            _api(84, "ReadShareGroupState", "0", "0+"),
            _api(85, "WriteShareGroupState", "0-1", "0+"),
            _api(86, "DeleteShareGroupState", "0", "0+"),
            _api(87, "ReadShareGroupStateSummary", "0-1", "0+"),
            _api(88, "StreamsGroupHeartbeat", "0", "0+"),
            _api(89, "StreamsGroupDescribe", "0", "0+"),
            _api(90, "DescribeShareGroupOffsets", "0-1", "0+"),
            _api(91, "AlterShareGroupOffsets", "0", "0+"),
            _api(92, "DeleteShareGroupOffsets", "0", "0+"),
        )
    )
)
