"""An HTTP proxy in front of an S3 server: counts what is asked, and breaks answers on purpose."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal

_CHUNK_BYTES: Final = 1 << 16
_HOP_BY_HOP: Final = {"connection", "transfer-encoding", "date", "server", "expect"}


@dataclass
class Fault:
    """What happens to the next `times` requests of `method` whose path ends with `path`.

    truncate, stall: after half of the body, close the connection or say nothing more. flip: one
    bit of the first byte. slow: `pause_s` before the body. status: answer that, with S3's `code`.
    """

    kind: Literal["truncate", "stall", "flip", "slow", "status"]
    path: str
    times: int = 1
    method: str = "GET"
    status: int = 503
    code: str = "SlowDown"
    pause_s: float = 0.0


@dataclass
class Asked:
    method: str
    path: str
    range: str | None
    if_match: str | None


@dataclass
class FaultProxy:
    """faults: used up in order. asked: every request, as it came. url: where clients connect."""

    target: tuple[str, int]
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def gets(self, path: str) -> list[Asked]:
        return [each for each in self.asked if each.method == "GET" and each.path.endswith(path)]

    def take_fault(self, asked: Asked) -> Fault | None:
        with self.lock:
            self.asked.append(asked)
            for fault in self.faults:
                if fault.times and fault.method == asked.method and asked.path.endswith(fault.path):
                    fault.times -= 1
                    return fault
            return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # of five, the connections of eight processes would be dropped


@contextmanager
def proxy_to(target: tuple[str, int]) -> Iterator[FaultProxy]:
    """The proxy while the body runs."""
    proxy = FaultProxy(target)
    server = _Server(("127.0.0.1", 0), _handler(proxy))
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield proxy
    finally:
        proxy.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            path = self.path.partition("?")[0]
            asked = Asked(
                self.command, path, self.headers.get("Range"), self.headers.get("If-Match")
            )
            fault = proxy.take_fault(asked)
            if fault is not None and fault.kind == "status":
                self.refuse(fault)
                return
            upstream = http.client.HTTPConnection(*proxy.target)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
                upstream.request(self.command, self.path, sent, headers)
                self.relay(upstream.getresponse(), fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client left, as it may after a fault
            finally:
                upstream.close()

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do

        def relay(self, answer: http.client.HTTPResponse, fault: Fault | None) -> None:
            self.send_response(answer.status)
            length = answer.getheader("Content-Length")
            chunked = length is None and self.command != "HEAD" and answer.status != 204
            whole = answer.read() if chunked else b""
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            if chunked:
                self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if chunked:
                self.wfile.write(whole)
                return
            self.relay_body(answer, int(length or 0), fault)

        def relay_body(
            self, answer: http.client.HTTPResponse, left: int, fault: Fault | None
        ) -> None:
            kind = fault.kind if fault is not None else None
            if fault is not None and kind == "slow":
                proxy.closing.wait(fault.pause_s)
            if kind in ("truncate", "stall"):
                left //= 2
            first = True
            while left > 0 and (data := answer.read(min(_CHUNK_BYTES, left))):
                left -= len(data)
                if first and kind == "flip":
                    data = bytes([data[0] ^ 1]) + data[1:]
                first = False
                self.wfile.write(data)
            if kind == "stall":
                proxy.closing.wait()
            if kind in ("truncate", "stall"):
                self.close_connection = True

        def refuse(self, fault: Fault) -> None:
            body = f"<Error><Code>{fault.code}</Code><Message>no</Message></Error>".encode()
            self.send_response(fault.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler
