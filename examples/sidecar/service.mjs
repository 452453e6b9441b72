// A service that books payments: node service.mjs PORT. No line of it knows Semel.
import { createServer } from "node:http";

let payments = 0;
const server = createServer((req, res) => {
  req.resume();
  req.on("end", () => {
    payments++;
    res.writeHead(201, { "Content-Type": "application/json" });
    res.end(JSON.stringify({ payment: payments, account: req.headers["x-account"] }));
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("the service listens"));
