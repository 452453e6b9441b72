// An Express service. It prints its port, and counts what it has done by path.
const { createRequire } = require("module");
const express = createRequire(process.argv[2] + "/")("express");

const app = express();
const done = {};
const did = (req, res) => {
  req.resume();
  req.on("end", () => {
    done[req.path] = (done[req.path] || 0) + 1;
    res.status(201).json({ path: req.path, times: done[req.path] });
  });
};
app.use((req, res, next) => {
  if (req.headers.origin) {
    res.set("Access-Control-Allow-Origin", req.headers.origin);
    res.set("Vary", "Origin");
  }
  if (req.method === "OPTIONS") {
    res.set("Access-Control-Allow-Headers", "content-type, idempotency-key");
    res.set("Access-Control-Allow-Methods", "POST");
    return res.sendStatus(204);
  }
  next();
});
app.post("/upload", did);
app.post("/pay", did);
app.get("/done", (req, res) => res.json(done));
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
