# usage: producer.py URL TOPIC one|batch
# Sends three messages with the keys python-0 to python-2, and waits for their answers.
import sys

import pulsar

url, topic, batching = sys.argv[1:]
client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
producer = client.create_producer(
    topic,
    batching_enabled=batching == "batch",
    batching_type=pulsar.BatchingType.KeyBased,
    batching_max_publish_delay_ms=100,
)
failed = []


def answered(result, _):
    if result != pulsar.Result.Ok:
        failed.append(result)


for n in range(3):
    producer.send_async(
        f"from Python {n}".encode(),
        answered,
        properties={"idempotency-key": f"python-{n}"},
        partition_key="ann" if n < 2 else "bob",
    )
producer.flush()
client.close()
sys.exit(f"not sent: {failed}" if failed else 0)
