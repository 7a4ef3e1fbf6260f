"""The part of S3 that control's store needs, over real HTTP: GET and conditional PUT of objects."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Bucket:
    """Objects by path. hang: an Event that a PUT waits for after it was done, as a lost answer."""

    objects: dict[str, bytes] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    hang: threading.Event | None = None
    status: int | None = None

    def tag(self, path: str) -> str | None:
        body = self.objects.get(path)
        return None if body is None else f'"{hashlib.md5(body).hexdigest()}"'

    def put(self, path: str, body: bytes, must_match: str | None, must_be_new: bool) -> int:
        with self.lock:
            held = self.tag(path)
            if must_match is not None and held is None:
                return 404
            if (must_match is not None and held != must_match) or (must_be_new and held):
                return 412
            self.objects[path] = body
            return 200


@contextmanager
def serving(bucket: Bucket) -> Iterator[str]:
    """The server's URL while the body runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = bucket.objects.get(self.path.partition("?")[0])
            if bucket.status is not None or body is None:
                self.answer(bucket.status or 404)
            else:
                self.answer(200, body, bucket.tag(self.path.partition("?")[0]))

        def do_PUT(self) -> None:
            path = self.path.partition("?")[0]
            body = self.read_body()
            if bucket.status is not None:
                self.answer(bucket.status)
                return
            new = self.headers.get("If-None-Match") == "*"
            status = bucket.put(path, body, self.headers.get("If-Match"), new)
            if bucket.hang is not None:
                bucket.hang.wait(20)
            self.answer(status, b"", bucket.tag(path) if status == 200 else None)

        def read_body(self) -> bytes:
            """boto3 sends `aws-chunked` when it adds a checksum as a trailer."""
            if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", "0")))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)

        def answer(self, status: int, body: bytes = b"", tag: str | None = None) -> None:
            if status >= 400:
                code = {404: "NoSuchKey", 412: "PreconditionFailed"}.get(status, "InternalError")
                body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if tag is not None:
                self.send_header("ETag", tag)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
