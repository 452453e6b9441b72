"""A Flask service. It prints its port, and counts what it has done by path."""
from flask import Flask, jsonify, request
from werkzeug.serving import make_server

app = Flask(__name__)
done = {}


def did():
    done[request.path] = done.get(request.path, 0) + 1
    return jsonify(path=request.path, times=done[request.path]), 201


@app.post("/orders/")  # Flask redirects /orders to it with 308
def order():
    return did()


@app.patch("/items/7")  # Werkzeug reads the method "patch" as PATCH
def patch():
    return did()


@app.post("/digest")
def digest():
    if not request.headers.get("Authorization", "").startswith("Digest "):
        return "", 401, {"WWW-Authenticate": 'Digest realm="r", qop="auth", nonce="n", algorithm=MD5'}
    if not request.get_data():
        return "the body is missing", 400
    return did()


@app.get("/done")
def count():
    return jsonify(done)


server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.port, flush=True)
server.serve_forever()
