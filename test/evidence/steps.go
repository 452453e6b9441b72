package main

// step is one run of go test.
type step struct {
	name  string
	about string // a sentence about the step; the page has it
	dir   string // from the root of the repository
	args  []string
	env   []string
	alone bool // it measures times, so that no other step may run beside it
	slow  bool // it takes minutes, so that it begins before the others
}

var long = []string{"SEMEL_EVIDENCE=1"}

// steps are in the order of the page.
var steps = []step{
	{"model", "Spin searches every state of a model of the protocol, in variants that must hold and variants that must fail.", "test/model", []string{"-timeout=20m"}, long, false, false},
	{"simulation", "The Guard and the memory store under virtual time and one seeded scheduler that loses, delays and doubles messages, crashes and freezes processes, and turns the store's clock.", "test/sim", []string{"-timeout=45m"}, long, false, true},
	{"linearizability", "Porcupine checks histories of the stores' operations, with those on steps and timers, recorded while faults happen.", "test/linear", []string{"-timeout=20m"}, long, false, false},
	{"storms", "Guards of several processes over each store while its calls fail, hang and come late, handlers fail in all their ways, and sweepers, operators and reconcilers come in between.", "test/storm", []string{"-skip=^TestStorm_OneOutcomePerKey$/^dynamostore$", "-timeout=60m"}, long, false, true},
	{"storms on DynamoDB", "The same on an emulator of DynamoDB, which is slow.", "test/storm", []string{"-run=^TestStorm_OneOutcomePerKey$/^dynamostore$", "-timeout=30m"}, long, true, false},
	{"histories", "Random histories of store operations, compared step by step with an independent model.", "store/storetest", []string{"-run=^TestCampaign_ManyHistories_AgreeWithModel$"}, long, false, false},
	{"chaos", "Processes are killed and frozen, replies cut and delayed, disks filled; the oracle is a ledger that knows nothing of Semel.", "test/chaos", []string{"-timeout=30m"}, long, false, true},
	{"simulated sagas", "Sagas in processes that die, freeze and reach the memory store by a network that loses, delays and doubles, while its clock jumps, processes of another version come, steps put messages in transactions, and operators retry, skip and turn back.", "saga", []string{"-run=^Test(Campaign_)?SagasUnderFaults_", "-timeout=75m"}, long, false, true},
	{"sagas", "Workers of sagas over SQLite, PostgreSQL and DynamoDB are killed at every effect, between and in transactions; the control, keys of processes, doubles.", "test/saga", []string{"-timeout=60m"}, long, false, true},
	{"postgres", "The PostgreSQL server is killed under load, also with synchronous_commit=off, which must lose.", "store/pgstore", []string{"-run=^(TestStore_ServerKilled_ConfirmedRecordsStay|TestStore_SynchronousCommitOff_CrashLoses|TestAtomic_ServerKilled_EffectsOnce)$", "-timeout=20m"}, long, false, true},
	{"failover", "PostgreSQL fails over to its synchronous standby while calls wait for it, run into deadlines and resets, and an operator cancels their waits; the control, a plain read as a confirmation, loses.", "test/failover", []string{"-timeout=90m"}, long, false, true},
	{"upgrade", "Processes of this version and of a later one with one more additive migration work on one database, and the earlier ones restart.", "test/upgrade", []string{"-timeout=20m"}, long, false, false},
	{"redis", "Redis is killed, failed over and cut off while work goes on, and the controls lose.", "store/redisstore", []string{"-run=^(TestServerCrash_|TestFailOver_|TestCluster_SlotsMove|TestClock_OfServerJumps|TestClaim_ReplyLost|TestEviction|TestRequestsLate|TestClaimIsTakenBackLate)", "-timeout=20m"}, long, false, false},
	{"dynamodb", "An emulator of DynamoDB: requests are lost, late and doubled, clocks differ, 64 callers race for a key, and the control, clocks beyond the bound, runs handlers side by side.", "store/dynamostore", []string{"-run=^(TestClaim_64|TestGuard_Requests|TestAtomic_Requests|TestLease_|TestConformance$|TestCampaign_)", "-timeout=40m"}, long, false, false},
	{"lambda", "Functions of AWS Lambda in real processes, which are killed and stopped at their time-outs in the middle of invocations, or frozen; on a Runtime API of the test and in AWS's emulator.", "test/lambda", []string{"-timeout=20m"}, long, false, false},
	{"outages", "PostgreSQL and Redis are frozen, cut off and killed under load: how long callers wait.", "test/outage", []string{"-timeout=20m"}, long, true, false},
	{"kafka", "Members of a consumer group are killed and frozen while a hundred thousand messages, three in ten of them twice, take effect; the controls double. On Apache Kafka, where it can be had, and on kfake. In storms all else fails at once. Members come and go 50 times while handlers fail and are slow.", "consume/semelkafka/kafkatest", []string{"-run=^Test(Serve_MembersDie|Control_NoDeduplication|ServeBatches_MembersDie(OnARealKafka)?_EachEffectOnce|ServeBatches_MemberFrozen|Storm_EachForm|Restarts_LoseNothing)", "-timeout=60m"}, long, false, true},
	{"outbox", "Publishers of an outbox in PostgreSQL are killed and frozen while transactions write messages, which go to Kafka (kfake).", "consume/semelkafka/kafkatest", []string{"-run=^TestOutbox_", "-timeout=20m"}, long, false, true},
	{"outbox server", "The PostgreSQL server of an outbox is killed while transactions write messages and publishers send them.", "store/pgstore/pgoutbox", []string{"-run=^TestCampaign_", "-timeout=20m"}, long, false, false},
	{"choreography", "Three services, each with a database and an outbox in PostgreSQL, handle orders over Kafka, and the last step refuses one in five. Services, publishers and the broker are killed and frozen; the controls lose and double. On kfake, and on Apache Kafka, where it can be had.", "examples/saga-kafka-postgres", []string{"-run=^TestCampaign_", "-timeout=120m"}, long, false, true},
	{"rabbitmq", "Consumers of RabbitMQ are killed while a hundred thousand messages, three in ten of them twice, take effect; the control doubles. Consumers come and go 50 times while handlers fail and are slow.", "consume/semelamqp", []string{"-run=^TestCampaign_(ProcessesKilled|NextProcess|ControlNoDeduplication|Restarts)|^TestOrder_", "-timeout=60m"}, long, false, true},
	{"nats", "Consumers of NATS JetStream are killed while a hundred thousand messages, three in ten of them twice, take effect; the control doubles. On three servers consumers come and go 50 times while handlers fail and are slow.", "consume/semelnats/natstest", []string{"-run=^TestCampaign_(MembersDie|ControlNoDeduplication|Restarts)", "-timeout=60m"}, long, false, true},
	{"killed processes on SQS and Pulsar", "Consumers of SQS (ElasticMQ) and of Pulsar are processes that are killed with -9, with an Atomic over one SQLite file, while a hundred thousand messages, three in ten of them twice, take effect; the controls double.", "examples/internal/campaign", []string{"-run=^TestCampaign_", "-timeout=120m"}, long, false, true},
	{"sqs", "Consumers of SQS (ElasticMQ) with leases lose their connections while a hundred thousand messages, three in ten of them twice, take effect; the control doubles. Consumers come and go 50 times while handlers fail and are slow.", "consume/semelsqs", []string{"-run=^TestCampaign_|^TestServe_NoMessages", "-timeout=90m"}, long, false, true},
	{"pulsar", "Consumers of Pulsar with leases lose their connections in each type of subscription while a hundred thousand messages, three in ten of them twice, take effect; the control doubles. The broker is killed, too. Consumers come and go 50 times while handlers fail and are slow.", "consume/semelpulsar", []string{"-run=^TestCampaign_|^TestServe_NoMessages", "-timeout=90m"}, long, false, true},
	{"stuck keys on Kafka", "One order key, or one shard of the store, is stuck: the latency of the others.", "consume/semelkafka/kafkatest", []string{"-run=^TestOneStuck"}, long, true, false},
	{"stuck keys on RabbitMQ", "The same, on RabbitMQ.", "consume/semelamqp", []string{"-run=^TestOneStuck_OthersGoOn$"}, long, true, false},
	{"stuck keys on SQS", "The same, on ElasticMQ, which speaks the protocol of SQS.", "consume/semelsqs", []string{"-run=^TestOneStuck_OthersGoOn$"}, long, true, false},
	{"stuck keys on Pulsar", "The same, on Pulsar.", "consume/semelpulsar", []string{"-run=^TestOneStuck_OthersGoOn$"}, long, true, false},
	{"stuck keys on NATS", "The same, on three servers of NATS.", "consume/semelnats/natstest", []string{"-run=^TestOneStuck_OthersGoOn$"}, long, true, false},
	{"handlers", "Handlers end or spoil the transaction that they were lent, in all ways that we know.", "store/pgstore", []string{"-run=^TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree$"}, long, false, false},
	{"flood", "One tenant floods the proxy, as in a report of a fault: the latency of another tenant, and the memory. The same flood comes to a proxy that does nothing but refuse it.", "cmd/semel/internal/cli", []string{"-run=^TestProxy_OneTenantFloods_OthersServed$/report"}, long, true, false},
	{"flood of 400 clients", "The same, by 400 clients that do not pause.", "cmd/semel/internal/cli", []string{"-run=^TestProxy_OneTenantFloods_OthersServed$/clients"}, long, true, false},
	{"clients", "Clients and frameworks in Python, JavaScript, Java and a browser, through the proxy.", "test/httpclients", []string{"-timeout=20m"}, long, false, false},
	{"console", "Pages of the console over 100,000 records, few of which are in doubt, failed, running, reserved, released or expired: how long a list of each and a search take.", "test/console", []string{"-run=^TestCampaign_ManyRecords", "-timeout=20m"}, long, true, false},
	{"proxy", "The proxy is killed with requests in flight, on SQLite.", "cmd/semel/internal/cli", []string{"-run=^TestCampaign_ProxyKilled_EachKeyTakesEffectOnce$", "-timeout=20m"}, long, false, false},
	{"deliver", "Two members of semel deliver and the service are killed and frozen while messages of NATS and of Pulsar, three in ten of them twice, take effect; under park a message takes effect at most once, or is in the quarantine. The controls, a service that ignores the key and a plain consumer that POSTs, double.", "cmd/semel/semel-deliver/internal/cli", []string{"-run=^TestCampaign_(MembersAndServiceKilled|Pulsar)", "-timeout=30m"}, long, false, false},
	{"deliver in other languages", "A service in Python and one in TypeScript, members of semel deliver and their broker, NATS, are killed, the service while it has requests; members are frozen, too.", "examples/deliver", []string{"-run=^TestCampaign_", "-timeout=60m"}, long, false, false},
	{"outbox publish", "Two processes of semel outbox publish are killed and frozen while transactions write messages in PostgreSQL, which go to NATS and to Kafka (kfake).", "cmd/semel/semel-deliver/internal/cli", []string{"-run=^TestCampaign_PublishersKilled", "-timeout=30m"}, long, false, false},
	{"move", "A service moves from SQLite to PostgreSQL while clients send a million keys and duplicates; the copy and a proxy are killed. The control starts with the new store alone, and doubles.", "cmd/semel/internal/cli", []string{"-run=^TestCampaign_(Move|Copy)", "-timeout=120m"}, long, false, false},
	{"museum", "Seeded bugs, each with the project that had it, and whether the tests catch them.", "test/museum", []string{"-timeout=30m"}, nil, false, true},
}
