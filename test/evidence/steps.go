package main

// step is one run of go test.
type step struct {
	name  string
	about string // a sentence about the step; the page has it
	dir   string // from the root of the repository
	args  []string
	env   []string
}

var long = []string{"SEMEL_EVIDENCE=1"}

// steps are in the order of the page.
var steps = []step{
	{"model", "Spin searches every state of a model of the protocol, in variants that must hold and variants that must fail.", "test/model", []string{"-timeout=20m"}, long},
	{"simulation", "The Guard and the memory store under virtual time and one seeded scheduler that loses, delays and doubles messages, crashes and freezes processes, and turns the store's clock.", "test/sim", []string{"-timeout=30m"}, long},
	{"linearizability", "Porcupine checks histories of the stores' operations, recorded while faults happen.", "test/linear", []string{"-timeout=20m"}, long},
	{"storms", "Guards of several processes over each store while its calls fail, hang and come late, handlers fail in all their ways, and sweepers, operators and reconcilers come in between.", "test/storm", []string{"-timeout=60m"}, long},
	{"histories", "Random histories of store operations, compared step by step with an independent model.", "store/storetest", []string{"-run=^TestHistories_Many_AgreeWithModel$"}, long},
	{"chaos", "Processes are killed and frozen, replies cut and delayed, disks filled; the oracle is a ledger that knows nothing of Semel.", "test/chaos", []string{"-timeout=30m"}, long},
	{"postgres", "The PostgreSQL server is killed under load, also with synchronous_commit=off, which must lose.", "store/pgstore", []string{"-run=^(TestStore_ServerKilled_ConfirmedRecordsStay|TestStore_SynchronousCommitOff_CrashLoses|TestAtomic_ServerKilled_EffectsOnce)$", "-timeout=20m"}, long},
	{"redis", "Redis is killed, failed over and cut off while work goes on, and the controls lose.", "store/redisstore", []string{"-run=^(TestWhatWas|TestWith|TestAnAmbiguous|TestEviction|TestWorkGoesOn)", "-timeout=20m"}, long},
	{"kafka", "Members of a consumer group are killed and frozen while a hundred thousand messages, three in ten of them twice, take effect; the controls double. On Apache Kafka, where it can be had, and on kfake. In storms all else fails at once.", "consume/semelkafka/kafkatest", []string{"-run=^Test(Serve_MembersDie|Control_NoDeduplication|ServeBatches_MembersDie(OnARealKafka)?_EachEffectOnce|ServeBatches_MemberFrozen|Storm_EachForm)", "-timeout=60m"}, long},
	{"rabbitmq", "Consumers of RabbitMQ are killed while a hundred thousand messages, three in ten of them twice, take effect; the control doubles.", "consume/semelamqp", []string{"-run=^Test(Serve_ProcessesKilled|Order_|Control_NoDeduplication)", "-timeout=60m"}, long},
	{"nats", "Consumers of NATS JetStream are killed while a hundred thousand messages, three in ten of them twice, take effect; the control doubles.", "consume/semelnats/natstest", []string{"-run=^Test(Serve_MembersDie|Control_NoDeduplication)", "-timeout=60m"}, long},
	{"proxy", "The proxy is killed with requests in flight, on SQLite.", "cmd/semel/internal/cli", []string{"-run=^TestProxy_Killed_EachKeyTakesEffectOnce$", "-timeout=20m"}, []string{"SEMEL_TEST_KILLS=110"}},
	{"museum", "Seeded bugs, each with the project that had it, and whether the tests catch them.", "test/museum", []string{"-timeout=30m"}, nil},
}
