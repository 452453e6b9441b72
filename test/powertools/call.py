"""usage: call.py ENDPOINT CALLS CONCURRENT

Makes calls through Powertools, and prints the milliseconds and the microseconds of
processor time that they took, and the median microseconds of a call.
"""

import itertools
import statistics
import sys
import threading
import time

import boto3
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from botocore.config import Config

endpoint, calls, concurrent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
client = boto3.client(
    "dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test",
    config=Config(max_pool_connections=64),
)
config = IdempotencyConfig(event_key_jmespath="id")
layer = DynamoDBPersistenceLayer(table_name="t", boto3_client=client)


class Context:
    def get_remaining_time_in_millis(self):
        return 60_000


config.register_lambda_context(Context())


@idempotent_function(data_keyword_argument="payment", config=config, persistence_store=layer)
def pay(payment):
    return {"receipt": payment["id"]}


def run(first, count):
    numbers = itertools.count(first)  # next is atomic, and so is append
    took = []

    def work():
        while (n := next(numbers)) < first + count:
            began = time.monotonic()
            pay(payment={"id": f"call {n}", "cents": 4200})
            took.append(time.monotonic() - began)

    threads = [threading.Thread(target=work) for _ in range(concurrent)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return statistics.median(took)


run(0, calls // 10)
began, processor = time.monotonic(), time.process_time()
median = run(1_000_000, calls)
print(round((time.monotonic() - began) * 1e3), round((time.process_time() - processor) * 1e6), round(median * 1e6))
