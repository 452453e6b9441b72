// A service that books payments. It gets each as a POST from semel deliver.
//
//     node service.ts PORT JOURNAL
//
// Node runs this file as it is from version 22.18 on; for an older one, compile it first:
// npx tsc. It needs nothing else. It knows nothing of Kafka, and no line of Semel is in
// it. Its effect is a line in a journal, and the line has the Idempotency-Key, so that a
// payment that is sent again after a crash is booked once.
import { createServer } from "node:http";
import { fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";

type Payment = { account: string; cents: number };
type Booked = Payment & { key: string };

const [port, journal] = [Number(process.argv[2]), String(process.argv[3])];
const booked = new Map<string, Booked>();

/** Read the journal. A crash can leave half a line at its end, which is no effect. */
function restore(): number {
	const file = openSync(journal, "a");
	const text = readFileSync(journal, "utf8");
	const whole = text.slice(0, text.lastIndexOf("\n") + 1);
	truncateSync(journal, Buffer.byteLength(whole));
	for (const line of whole.split("\n").filter(Boolean)) {
		const entry = JSON.parse(line) as Booked;
		booked.set(entry.key, entry);
	}
	return file;
}

const file = restore();

/** Book a payment once for each key. */
function book(entry: Booked): void {
	if (booked.has(entry.key)) return;
	writeSync(file, JSON.stringify(entry) + "\n");
	fsyncSync(file); // before the answer
	booked.set(entry.key, entry);
}

/** The payment in a body; null: it is none. */
function parse(body: string): Payment | null {
	try {
		const value: unknown = JSON.parse(body);
		const { account, cents } = value as Partial<Payment>;
		return typeof account === "string" && Number.isInteger(cents) ? { account, cents: cents as number } : null;
	} catch {
		return null;
	}
}

createServer(async (request, response) => {
	if (request.method === "GET") {
		const cents = [...booked.values()].reduce((sum, entry) => sum + entry.cents, 0);
		response.end(JSON.stringify({ payments: booked.size, cents }));
		return;
	}
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer);
	const key = request.headers["idempotency-key"];
	if (typeof key !== "string") {
		response.writeHead(400).end("there is no Idempotency-Key");
		return;
	}
	const payment = parse(Buffer.concat(chunks).toString());
	if (payment === null) {
		response.writeHead(422).end("a payment has an account and cents"); // to the dead letters
		return;
	}
	book({ key, ...payment });
	response.writeHead(204).end();
}).listen(port, "127.0.0.1");
