package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	callsDeadline = 60 * time.Second
	anyName       = kadm.QuotasMatchType(2)
)

// adminCalls makes the calls of user interfaces; tests/clients/admin_calls.py says which.
type adminCalls struct {
	arguments map[string]string
	admin     *kadm.Client
	answers   map[string]any
	topics    []string
	groups    []string
	scratch   string
}

func printAdminCalls(arguments map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callsDeadline)
	defer cancel()
	for address := range strings.SplitSeq(arguments["addresses"], ",") {
		client, err := kgo.NewClient(kgo.SeedBrokers(address))
		if err != nil {
			return err
		}
		calls := &adminCalls{
			arguments: arguments,
			admin:     kadm.NewClient(client),
			answers:   map[string]any{},
			topics:    []string{arguments["tiered"], arguments["whole"], arguments["written"]},
			groups:    strings.Split(arguments["groups"], ","),
			scratch:   arguments["scratch"],
		}
		err = calls.all(ctx)
		client.Close()
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(calls.answers); err != nil {
			return err
		}
	}
	return nil
}

func (c *adminCalls) all(ctx context.Context) error {
	timeMs, err := strconv.ParseInt(c.arguments["time_ms"], 10, 64)
	if err != nil {
		return err
	}
	c.deleteRecords(ctx)
	c.describeCluster(ctx)
	c.listOffsets(ctx, timeMs)
	c.describeGroups(ctx)
	c.changeTopics(ctx)
	c.changeGroups(ctx)
	c.changeSecurity(ctx)
	return nil
}

// keep keeps a call's result, or its error.
func keep[T any](c *adminCalls, name string, result T, err error) {
	var known *kerr.Error
	switch {
	case errors.As(err, &known):
		c.answers[name] = known.Message
	case err != nil:
		c.answers[name] = err.Error()
	default:
		c.answers[name] = result
	}
}

// await waits until the broker has applied a change that the controller has accepted.
func await(ctx context.Context, isApplied func() bool) {
	for !isApplied() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *adminCalls) partitions(topics ...string) kadm.TopicsSet {
	var found kadm.TopicsSet
	for _, topic := range topics {
		found.Add(topic, 0)
	}
	return found
}

func (c *adminCalls) describeCluster(ctx context.Context) {
	metadata, err := c.admin.Metadata(kadm.WithAuthorizedOps(ctx))
	keep(c, "Metadata", metadata, err)
	topics, err := c.admin.ListTopicsWithInternal(ctx)
	keep(c, "ListTopicsWithInternal", topics, err)
	configs, err := c.admin.DescribeTopicConfigs(ctx, c.topics...)
	keep(c, "DescribeTopicConfigs", configs, err)
	brokers, err := c.admin.DescribeBrokerConfigs(ctx, metadata.Controller)
	keep(c, "DescribeBrokerConfigs", brokers, err)
	resources, err := c.admin.ListConfigResources(ctx)
	keep(c, "ListConfigResources", resources.Sorted(), err)
	directories, err := c.admin.DescribeAllLogDirs(ctx, c.partitions(c.topics...))
	keep(c, "DescribeAllLogDirs", directories, err)
	producers, err := c.admin.DescribeProducers(ctx, c.partitions(c.topics...))
	keep(c, "DescribeProducers", producers, err)
	transactions, err := c.admin.ListTransactions(ctx, nil, nil)
	keep(c, "ListTransactions", transactions, err)
	transaction, err := c.admin.DescribeTransactions(ctx, c.arguments["transaction"])
	keep(c, "DescribeTransactions", transaction, err)
	moved, err := c.admin.ListPartitionReassignments(ctx, c.partitions(c.topics...))
	keep(c, "ListPartitionReassignments", moved, err)
	elected, err := c.admin.ElectLeaders(
		ctx, kadm.ElectPreferredReplica, c.partitions(c.arguments["whole"]))
	keep(c, "ElectLeaders", elected, err)
}

// deleteRecords deletes the first record of the written topic, and nothing of the tiered one.
func (c *adminCalls) deleteRecords(ctx context.Context) {
	var records kadm.Offsets
	records.Add(kadm.Offset{Topic: c.arguments["tiered"], Partition: 0, At: 0})
	records.Add(kadm.Offset{Topic: c.arguments["written"], Partition: 0, At: 1})
	deleted, err := c.admin.DeleteRecords(ctx, records)
	keep(c, "DeleteRecords", deleted, err)
}

func (c *adminCalls) listOffsets(ctx context.Context, timeMs int64) {
	questions := map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
		"Start":         c.admin.ListStartOffsets,
		"End":           c.admin.ListEndOffsets,
		"Committed":     c.admin.ListCommittedOffsets,
		"MaxTimestamp":  c.admin.ListMaxTimestampOffsets,
		"LocalLogStart": c.admin.ListLocalLogStartOffsets,
		"LatestRemote":  c.admin.ListLatestRemoteOffsets,
	}
	for name, ask := range questions {
		listed, err := ask(ctx, c.topics...)
		keep(c, "ListOffsets."+name, listed, err)
	}
	listed, err := c.admin.ListOffsetsAfterMilli(ctx, timeMs, c.topics...)
	keep(c, "ListOffsets.AfterMilli", listed, err)
}

func (c *adminCalls) describeGroups(ctx context.Context) {
	listed, err := c.admin.ListGroups(ctx)
	keep(c, "ListGroups", listed, err)
	classic, err := c.admin.DescribeGroups(ctx, c.groups[0])
	keep(c, "DescribeGroups", classic, err)
	keep(c, "DescribeGroups.Assigned", classic.AssignedPartitions(), err)
	current, err := c.admin.DescribeConsumerGroups(ctx, c.groups[1])
	keep(c, "DescribeConsumerGroups", current, err)
	for _, group := range c.groups {
		offsets, err := c.admin.FetchOffsets(ctx, group)
		keep(c, "FetchOffsets."+group, offsets, err)
	}
	lag, err := c.admin.Lag(ctx, c.groups[0])
	keep(c, "Lag", lag, err)
}

func (c *adminCalls) changeTopics(ctx context.Context) {
	size, tiered := "2000000", c.arguments["tiered"]
	configs := map[string]*string{"segment.bytes": &size}
	validated, err := c.admin.ValidateCreateTopics(ctx, 1, 1, configs, c.scratch)
	keep(c, "ValidateCreateTopics", validated, err)
	created, err := c.admin.CreateTopics(ctx, 1, 1, configs, c.scratch)
	keep(c, "CreateTopics", created, err)
	set := func(name string) []kadm.AlterConfig {
		return []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &size}}
	}
	altered, err := c.admin.AlterTopicConfigs(ctx, set("retention.ms"), c.scratch)
	keep(c, "AlterTopicConfigs", altered, err)
	for _, name := range []string{"retention.ms", "retention.bytes", "max.message.bytes"} {
		valid, err := c.admin.ValidateAlterTopicConfigs(ctx, set(name), tiered)
		keep(c, "ValidateAlterTopicConfigs.tiered."+name, valid, err)
	}
	more, err := c.admin.UpdatePartitions(ctx, 2, c.scratch)
	keep(c, "UpdatePartitions", more, err)
	deleted, err := c.admin.DeleteTopics(ctx, c.scratch)
	keep(c, "DeleteTopics", deleted, err)
	await(ctx, func() bool {
		listed, err := c.admin.ListTopics(ctx)
		return err == nil && !listed.Has(c.scratch)
	})
}

func (c *adminCalls) changeGroups(ctx context.Context) {
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: c.arguments["tiered"], Partition: 0, At: 3, LeaderEpoch: -1})
	committed, err := c.admin.CommitOffsets(ctx, c.scratch, offsets)
	keep(c, "CommitOffsets", committed, err)
	lag, err := c.admin.Lag(ctx, c.scratch)
	keep(c, "Lag.Empty", lag, err)
	deleted, err := c.admin.DeleteOffsets(ctx, c.scratch, c.partitions(c.arguments["tiered"]))
	keep(c, "DeleteOffsets", deleted, err)
	// Without offsets and members the broker may have removed the group by itself.
	_, err = c.admin.CommitOffsets(ctx, c.scratch, offsets)
	keep(c, "CommitOffsets.Again", err == nil, err)
	removed, err := c.admin.DeleteGroups(ctx, c.scratch, c.groups[0])
	keep(c, "DeleteGroups", removed, err)
}

func (c *adminCalls) changeSecurity(ctx context.Context) {
	// Not the name of a topic that is created: nobody else may use a topic with an ACL.
	rule := kadm.NewACLs().Topics(c.scratch + "-acl").Allow("User:" + c.scratch).AllowHosts("*").
		Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
	made, err := c.admin.CreateACLs(ctx, rule)
	keep(c, "CreateACLs", made, err)
	var described kadm.DescribeACLsResults
	awaitACLs := func(count int) {
		await(ctx, func() bool {
			described, err = c.admin.DescribeACLs(ctx, rule)
			return err == nil && len(described) == 1 && len(described[0].Described) == count
		})
	}
	awaitACLs(1)
	keep(c, "DescribeACLs", described, err)
	removed, err := c.admin.DeleteACLs(ctx, rule)
	keep(c, "DeleteACLs", removed, err)
	awaitACLs(0)
	altered, err := c.admin.AlterClientQuotas(ctx, c.quota(false))
	keep(c, "AlterClientQuotas", altered, err)
	users := []kadm.DescribeClientQuotaComponent{{Type: "user", MatchType: anyName}}
	var quotas kadm.DescribedClientQuotas
	awaitQuotas := func(count int) {
		await(ctx, func() bool {
			quotas, err = c.admin.DescribeClientQuotas(ctx, false, users)
			return err == nil && len(quotas) == count
		})
	}
	awaitQuotas(1)
	keep(c, "DescribeClientQuotas", quotas, err)
	altered, err = c.admin.AlterClientQuotas(ctx, c.quota(true))
	keep(c, "AlterClientQuotas.Removed", altered, err)
	awaitQuotas(0)
	credentials, err := c.admin.DescribeUserSCRAMs(ctx)
	keep(c, "DescribeUserSCRAMs", credentials, err)
	tokens, err := c.admin.DescribeDelegationTokens(ctx)
	keep(c, "DescribeDelegationTokens", tokens, err)
}

func (c *adminCalls) quota(remove bool) []kadm.AlterClientQuotaEntry {
	return []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &c.scratch}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 1000, Remove: remove}},
	}}
}
