// Sends the requests of a case with fetch, and prints an answer a line.
const [base, name, key] = process.argv.slice(2);
const requests = {
  redirect: () => fetch(base + "/orders", { method: "POST", headers: { "idempotency-key": key, "content-type": "application/json" }, body: '{"item":"book"}' }),
  patch: () => fetch(base + "/items/7", { method: "patch", headers: { "idempotency-key": key }, body: "x" }),
  form: () => {
    const form = new FormData();
    form.append("amount", "7");
    form.append("file", new Blob(["x".repeat(100000)], { type: "text/plain" }), "a.txt");
    return fetch(base + "/upload", { method: "POST", headers: { "idempotency-key": key }, body: form });
  },
};
for (let i = 0; i < 2; i++) {
  const res = await requests[name]();
  console.log(JSON.stringify({ status: res.status, replayed: res.headers.get("idempotent-replayed") === "true", url: res.url, body: await res.text() }));
}
