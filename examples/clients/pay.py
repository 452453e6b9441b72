"""Pays once, however often the request has to be sent: python3 pay.py URL KEY [SECONDS]"""
import http.client
import random
import sys
import time
import urllib.error
import urllib.request


def post(url, key, body, timeout=10, patience=120):
    """Sends the body under the key until there is a final answer, and returns its status,
    headers and body. It gives up after patience seconds; the same key may be used later."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    give_up = time.monotonic() + patience
    pause = 0.2
    while True:
        try:
            request = urllib.request.Request(url, body, headers)  # the same key and bytes each time
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refusal:
            text = refusal.read()
            if time.monotonic() > give_up or not may_change(refusal.code, refusal.headers):
                return refusal.code, refusal.headers, text
            after = refusal.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException):  # no answer: nobody knows whether it happened
            if time.monotonic() > give_up:
                raise
            after = ""
        time.sleep(max(int(after) if after.isdigit() else 0, pause * random.uniform(0.5, 1)))
        pause = min(pause * 2, 10)


def may_change(status, headers):
    """Reports whether the same request can get another answer later."""
    if "Idempotent-Replayed" in headers or "Semel-Outcome" in headers:
        return False
    return status in (408, 425, 429, 502, 503, 504) or 400 <= status < 500 and "Retry-After" in headers


if __name__ == "__main__":
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    status, headers, text = post(sys.argv[1], sys.argv[2], b'{"cents": 4200}', seconds)
    print(status, headers.get("Idempotent-Replayed", "false"), text.decode())
