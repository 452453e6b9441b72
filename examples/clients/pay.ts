// Pays once, however often the request has to be sent: node pay.ts URL KEY [SECONDS]
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

// post sends the body under the key until there is a final answer. It gives up after
// patience seconds; the same key may be used later.
export async function post(url: string, key: string, body: string, timeout = 10, patience = 120) {
  const giveUp = Date.now() + patience * 1000;
  for (let pause = 200; ; pause = Math.min(pause * 2, 10_000)) {
    let after = 0;
    try {
      const answer = await fetch(url, { // the same key and bytes each time
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": key },
        body,
        signal: AbortSignal.timeout(timeout * 1000),
      });
      const text = await answer.text();
      if (Date.now() > giveUp || !mayChange(answer)) {
        return { status: answer.status, headers: answer.headers, text };
      }
      after = Number(answer.headers.get("Retry-After")) || 0;
    } catch (lost) { // no answer: nobody knows whether it happened
      if (Date.now() > giveUp) throw lost;
    }
    await sleep(Math.max(after * 1000, pause * (0.5 + Math.random() / 2)));
  }
}

// mayChange reports whether the same request can get another answer later.
function mayChange({ status, headers }: { status: number; headers: Headers }): boolean {
  if (headers.has("Idempotent-Replayed") || headers.has("Semel-Outcome")) return false;
  return [408, 425, 429, 502, 503, 504].includes(status) || (status >= 400 && status < 500 && headers.has("Retry-After"));
}

const [url, key, seconds] = process.argv.slice(2);
const { status, headers, text } = await post(url, key, '{"cents": 4200}', Number(seconds ?? 10));
console.log(status, headers.get("Idempotent-Replayed") ?? "false", text);
