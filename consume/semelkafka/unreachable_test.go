package semelkafka

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The client does not connect to a broker that it does not need any more. Fetches from the
// others show that no message comes because there is none: an error would make the consumer
// pause longer and longer.
func TestNext_FetchAfterFailedConnection_IsNoError(t *testing.T) {
	s := &Source{}
	var hook any = &dialWatch{s}
	read, _ := hook.(kgo.HookBrokerRead)
	if read == nil {
		t.Fatal("it hears of no fetch")
	}
	hook.(kgo.HookBrokerConnect).OnBrokerConnect(kgo.BrokerMetadata{Host: "broker"}, 0, nil, errors.New("refused"))
	for _, failed := range []func(){
		func() {},
		func() { read.OnBrokerRead(kgo.BrokerMetadata{}, kmsg.Fetch.Int16(), 0, 0, 0, errors.New("closed")) },
		func() { read.OnBrokerRead(kgo.BrokerMetadata{}, kmsg.Metadata.Int16(), 1, 0, 0, nil) },
	} {
		if failed(); s.unreachable() == nil {
			t.Error("no error, though no fetch has succeeded")
		}
	}
	read.OnBrokerRead(kgo.BrokerMetadata{}, kmsg.Fetch.Int16(), 1, 0, 0, nil)
	if err := s.unreachable(); err != nil {
		t.Errorf("after a fetch: %v", err)
	}
}
