// A service that books payments. It gets each as a POST from semel deliver.
//
//     node service.mjs PORT JOURNAL
//
// It needs Node 18 or newer and nothing else. It knows nothing of Kafka, and no line of
// Semel is in it. Its effect is a line in a journal, and the line has the
// Idempotency-Key, so that a payment that is sent again after a crash is booked once.
// @ts-check
import { createServer } from "node:http";
import { fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";

const [port, journal] = [Number(process.argv[2]), process.argv[3]];

/** @typedef {{key: string, account: string, cents: number}} Booked */
/** @type {Map<string, Booked>} */
const booked = new Map();

/** Read the journal. A crash can leave half a line at its end, which is no effect. */
function restore() {
	const file = openSync(journal, "a");
	const text = readFileSync(journal, "utf8");
	const whole = text.slice(0, text.lastIndexOf("\n") + 1);
	truncateSync(journal, Buffer.byteLength(whole));
	for (const line of whole.split("\n").filter(Boolean)) {
		const entry = JSON.parse(line);
		booked.set(entry.key, entry);
	}
	return file;
}

const file = restore();

/** Book a payment once for each key. @param {Booked} entry */
function book(entry) {
	if (booked.has(entry.key)) return;
	writeSync(file, JSON.stringify(entry) + "\n");
	fsyncSync(file); // before the answer
	booked.set(entry.key, entry);
}

createServer(async (request, response) => {
	if (request.method === "GET") {
		const cents = [...booked.values()].reduce((sum, entry) => sum + entry.cents, 0);
		response.end(JSON.stringify({ payments: booked.size, cents }));
		return;
	}
	const chunks = [];
	for await (const chunk of request) chunks.push(chunk);
	const key = request.headers["idempotency-key"];
	if (typeof key !== "string") {
		response.writeHead(400).end("there is no Idempotency-Key");
		return;
	}
	let payment;
	try {
		payment = JSON.parse(Buffer.concat(chunks).toString());
	} catch {
		payment = null;
	}
	if (typeof payment?.account !== "string" || !Number.isInteger(payment?.cents)) {
		response.writeHead(422).end("a payment has an account and cents"); // to the dead letters
		return;
	}
	book({ key, account: payment.account, cents: payment.cents });
	response.writeHead(204).end();
}).listen(port, "127.0.0.1");
