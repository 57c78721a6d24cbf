"""A registry of one image behind a password, for tests: registry.py OCI-DIR USER:PASSWORD PORT-FILE."""

import base64
import http.server
import json
import os
import sys

LAYOUT, PAIR, PORT_FILE = sys.argv[1:]
WANTED = "Basic " + base64.b64encode(PAIR.encode()).decode()


def read(*path):
    with open(os.path.join(LAYOUT, *path), "rb") as file:
        return file.read()


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        if self.headers.get("Authorization") != WANTED:
            # It says what it was told, as registries should not.
            words = "authentication required, not " + self.headers.get("Authorization", "nothing")
            body = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": words}]}).encode()
            return self.answer(401, body, [("WWW-Authenticate", 'Basic realm="test"'),
                                           ("Content-Type", "application/json")])
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        kind, name = self.path.split("/")[-2:]
        manifest = json.loads(read("index.json"))["manifests"][0]
        digest = name if name.startswith("sha256:") else manifest["digest"]
        content = manifest["mediaType"] if kind == "manifests" else "application/octet-stream"
        try:
            body = read("blobs", *digest.split(":"))
        except OSError:
            return self.answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
        return self.answer(200, body, [("Content-Type", content), ("Docker-Content-Digest", digest)])

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
with open(PORT_FILE + ".new", "w", encoding="ascii") as file:
    file.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
