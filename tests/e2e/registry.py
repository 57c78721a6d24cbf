"""A registry of one image behind a password, for tests: registry.py ROOT-TAR USER:PASSWORD PORT-FILE.

The image has one layer, the root file system in the file ROOT-TAR as it is when the registry starts.
"""

import base64
import hashlib
import http.server
import json
import os
import platform
import sys

ROOT_TAR, PAIR, PORT_FILE = sys.argv[1:]
WANTED = "Basic " + base64.b64encode(PAIR.encode()).decode()
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

blobs = {}  # by their digests


def descriptor(kind, blob):
    """Keeps the blob, and returns what a manifest says of it."""
    digest = "sha256:" + hashlib.sha256(blob).hexdigest()
    blobs[digest] = blob
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": len(blob)}


def manifest_of(archive):
    layer = descriptor("layer.v1.tar", archive)
    config = {"architecture": ARCHITECTURE, "os": "linux",
              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
    return {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "layers": [layer],
            "config": descriptor("config.v1+json", json.dumps(config).encode())}


with open(ROOT_TAR, "rb") as root_tar:
    MANIFEST = descriptor("manifest.v1+json", json.dumps(manifest_of(root_tar.read())).encode())


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
        digest = name if name.startswith("sha256:") else MANIFEST["digest"]
        content = MANIFEST_TYPE if kind == "manifests" else "application/octet-stream"
        if digest not in blobs:
            return self.answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
        body = blobs[digest]
        return self.answer(200, body, [("Content-Type", content), ("Docker-Content-Digest", digest)])

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
with open(PORT_FILE + ".new", "w", encoding="ascii") as file:
    file.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
