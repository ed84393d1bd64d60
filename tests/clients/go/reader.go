// Command reader reads a topic over franz-go; tests/clients/reader_contract.py says what it does.
// With the argument calls=admin it makes the calls of tests/clients/admin_calls.py instead.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	deadline       = 60 * time.Second
	pollWait       = 200 * time.Millisecond
	recordsPerPoll = 10
)

// partitionRead is what was read of one partition.
type partitionRead struct {
	Count       int64  `json:"count"`
	FirstOffset int64  `json:"first_offset"`
	LastOffset  int64  `json:"last_offset"`
	Digest      string `json:"digest"`
	sum         hash.Hash
}

func (p *partitionRead) add(record *kgo.Record) {
	if p.Count == 0 {
		p.FirstOffset = record.Offset
	}
	p.LastOffset = record.Offset
	p.Count++
	numbers := binary.BigEndian.AppendUint64(nil, uint64(record.Offset))
	p.sum.Write(binary.BigEndian.AppendUint64(numbers, uint64(record.Timestamp.UnixMilli())))
	p.addSized(record.Key)
	p.addSized(record.Value)
	p.addInt(len(record.Headers))
	for _, header := range record.Headers {
		p.addSized([]byte(header.Key))
		p.addSized(header.Value)
	}
}

func (p *partitionRead) addSized(content []byte) {
	if content == nil {
		p.addInt(-1)
		return
	}
	p.addInt(len(content))
	p.sum.Write(content)
}

func (p *partitionRead) addInt(value int) {
	p.sum.Write(binary.BigEndian.AppendUint32(nil, uint32(int32(value))))
}

// reader reads the partitions of one topic up to where they ended when it started.
type reader struct {
	arguments map[string]string
	ends      map[int32]int64
	positions map[int32]int64
	reads     map[int32]*partitionRead
	count     int
}

func main() {
	arguments := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(argument, "=")
		arguments[name] = value
	}
	if arguments["calls"] == "admin" {
		if err := printAdminCalls(arguments); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	r := &reader{
		arguments: arguments,
		ends:      map[int32]int64{},
		positions: map[int32]int64{},
		reads:     map[int32]*partitionRead{},
	}
	if err := r.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r *reader) run(ctx context.Context) error {
	starts, err := r.ask(ctx)
	// The library's admin client leaves it to its caller to ask again.
	for giveUp := time.Now().Add(deadline); kerr.IsRetriable(err) && time.Now().Before(giveUp); {
		time.Sleep(pollWait)
		starts, err = r.ask(ctx)
	}
	if err != nil {
		return err
	}
	options, err := r.options(starts)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := r.readAll(ctx, client); err != nil {
		return err
	}
	for _, read := range r.reads {
		read.Digest = hex.EncodeToString(read.sum.Sum(nil))
	}
	return json.NewEncoder(os.Stdout).Encode(r.reads)
}

// ask learns the ends of the partitions, and the offsets to begin at; none for a group.
func (r *reader) ask(ctx context.Context) (map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.seeds()...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin, topic := kadm.NewClient(client), r.arguments["topic"]
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, err
	}
	ends.Each(func(end kadm.ListedOffset) { r.ends[end.Partition] = end.Offset })
	var listed kadm.ListedOffsets
	if timeMs, isTime := strings.CutPrefix(r.arguments["start"], "time:"); isTime {
		millisecond, parseErr := strconv.ParseInt(timeMs, 10, 64)
		if parseErr != nil {
			return nil, parseErr
		}
		listed, err = admin.ListOffsetsAfterMilli(ctx, millisecond, topic)
	} else if r.arguments["start"] == "earliest" {
		listed, err = admin.ListStartOffsets(ctx, topic)
	}
	starts := map[int32]int64{}
	listed.Each(func(start kadm.ListedOffset) { starts[start.Partition] = start.Offset })
	return starts, errors.Join(err, listed.Error())
}

func (r *reader) seeds() []string {
	return strings.Split(r.arguments["bootstrap"], ",")
}

func (r *reader) options(starts map[int32]int64) ([]kgo.Opt, error) {
	fetchBytes, err := strconv.ParseInt(r.arguments["fetch_bytes"], 10, 32)
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(r.seeds()...),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxPartitionBytes(int32(fetchBytes)),
		// A marker may be a partition's last record.
		kgo.KeepControlRecords(),
	}
	if r.arguments["isolation"] == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if rack := r.arguments["rack"]; rack != "" {
		options = append(options, kgo.Rack(rack))
	}
	topic := r.arguments["topic"]
	if group, isGroup := strings.CutPrefix(r.arguments["start"], "group:"); isGroup {
		return append(options,
			kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit()), nil
	}
	offsets := map[int32]kgo.Offset{}
	for partition, offset := range starts {
		offsets[partition] = kgo.NewOffset().At(offset)
		r.positions[partition] = offset
	}
	return append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})), nil
}

func (r *reader) readAll(ctx context.Context, client *kgo.Client) error {
	pause, err := strconv.Atoi(r.arguments["pause"])
	if err != nil {
		return err
	}
	giveUp := time.Now().Add(deadline)
	for !r.isAtTheEnd() {
		if time.Now().After(giveUp) {
			return fmt.Errorf("positions %v, ends %v", r.positions, r.ends)
		}
		before := r.count
		if err := r.poll(ctx, client); err != nil {
			return err
		}
		if before < pause && pause <= r.count {
			fmt.Printf("{\"paused\": %d}\n", r.count)
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return err
			}
			giveUp = time.Now().Add(deadline)
		}
	}
	return nil
}

func (r *reader) poll(ctx context.Context, client *kgo.Client) error {
	waiting, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	fetches := client.PollRecords(waiting, recordsPerPoll)
	for _, failed := range fetches.Errors() {
		if errors.Is(failed.Err, context.DeadlineExceeded) || kerr.IsRetriable(failed.Err) {
			continue
		}
		return failed.Err
	}
	fetches.EachRecord(func(record *kgo.Record) {
		r.positions[record.Partition] = record.Offset + 1
		if record.Attrs.IsControl() {
			return
		}
		read := r.reads[record.Partition]
		if read == nil {
			read = &partitionRead{sum: sha256.New()}
			r.reads[record.Partition] = read
		}
		read.add(record)
		r.count++
	})
	return nil
}

func (r *reader) isAtTheEnd() bool {
	for partition, end := range r.ends {
		if position, known := r.positions[partition]; !known || position < end {
			return false
		}
	}
	return true
}
