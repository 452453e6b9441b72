"""A service that books payments. It gets each as a POST from semel deliver.

    python3 service.py PORT DATABASE

It needs Python 3 and nothing else. It knows nothing of Kafka, and no line of Semel is
in it. It keeps the Idempotency-Key in the transaction of its effect, so that a payment
that is sent again after a crash is booked once.
"""

import json
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = """
CREATE TABLE IF NOT EXISTS booked (key TEXT PRIMARY KEY, account TEXT NOT NULL, cents INTEGER NOT NULL);
"""


def book(database, key, account, cents):
    """Book a payment once for each key."""
    with database:  # one transaction: the key and the effect, or neither
        database.execute("INSERT INTO booked VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (key, account, cents))


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    path_of_database = ""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"]
        try:
            payment = json.loads(body)
            account, cents = payment["account"], int(payment["cents"])
        except (ValueError, KeyError, TypeError):
            return self.answer(422, "a payment has an account and cents")  # to the dead letters
        if not key:
            return self.answer(400, "there is no Idempotency-Key")
        database = sqlite3.connect(self.path_of_database, timeout=30)
        try:
            book(database, key, account, cents)
        finally:
            database.close()
        self.answer(204)

    def do_GET(self):
        database = sqlite3.connect(self.path_of_database, timeout=30)
        try:
            payments, cents = database.execute("SELECT count(*), coalesce(sum(cents), 0) FROM booked").fetchone()
        finally:
            database.close()
        self.answer(200, json.dumps({"payments": payments, "cents": cents}))

    def answer(self, status, text=""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode() if status != 204 else b"")

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # semel deliver opens up to 64 connections at once


def main():
    port, Service.path_of_database = int(sys.argv[1]), sys.argv[2]
    database = sqlite3.connect(Service.path_of_database)
    database.executescript(SCHEMA)
    database.close()
    Server(("127.0.0.1", port), Service).serve_forever()


if __name__ == "__main__":
    main()
