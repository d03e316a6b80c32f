"""Servers on loopback: a proxy before the service that loses answers, and a receiver of webhooks."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from medley_client import Task


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    at_s: float


@dataclass(frozen=True)
class Reply:
    """An answer of the proxy itself."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"error": {"type": "rate_limit", "message": "Slow down."}}'


#: 'pass'; 'cut': the request reaches the service, and its answer is lost; 'refuse': it reaches nobody; 'silent': nor
#: does it, and its answer has a head alone.
Act = str | Reply


class Server:
    """An HTTP server in threads of its own."""

    def __init__(self, handle: Callable[[BaseHTTPRequestHandler, bytes], None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                handle(self, _body_of(self))

            do_GET = do_POST = do_PATCH = do_DELETE = _any

            def log_message(self, format: str, *args: Any) -> None:
                return

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                return

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _body_of(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("transfer-encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("content-length") or 0))
    body = b""
    while length := int(handler.rfile.readline(), 16):
        body += handler.rfile.read(length)
        handler.rfile.readline()
    handler.rfile.readline()
    return body


class Proxy:
    """A proxy before the service. `decide` gets each request and its number, from 1."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self.seen: list[Seen] = []
        #: Answers of the service go on in pieces of this size at most.
        self.piece_bytes = 65536
        self.decide: Callable[[Seen, int], Act] = lambda _seen, _nth: "pass"
        self._lock = threading.Lock()
        self._server = Server(self._handle)
        self.url = self._server.url

    def stop(self) -> None:
        self._server.stop()

    def paths(self) -> list[str]:
        return [seen.path for seen in self.seen]

    def creations(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.path.startswith("/v1/generate")]

    def _handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(handler.command, handler.path, headers, time.monotonic())
        with self._lock:
            self.seen.append(seen)
            act = self.decide(seen, len(self.seen))
        if isinstance(act, Reply):
            self._reply(handler, act)
        elif act == "refuse":
            handler.close_connection = True
        elif act == "silent":
            handler.send_response(200)
            handler.end_headers()
            handler.rfile.read(1)  # until its caller leaves
            handler.close_connection = True
        else:
            self._forward(handler, body, headers, is_lost=act == "cut")

    def _reply(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        body = reply.body.encode()
        handler.send_response(reply.status)
        for name, value in {**reply.headers, "content-length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes, headers: dict[str, str], *, is_lost: bool) -> None:
        connection = http.client.HTTPConnection(self._target)
        hops = ("transfer-encoding", "content-length", "connection")
        sent = {name: value for name, value in headers.items() if name not in hops}
        try:
            connection.request(handler.command, handler.path, body or None, sent)
            answer = connection.getresponse()
            handler.close_connection = True
            if is_lost:
                answer.read()
                return
            handler.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                    handler.send_header(name, value)
            is_chunked = answer.getheader("content-length") is None
            if is_chunked:
                handler.send_header("transfer-encoding", "chunked")
            handler.send_header("connection", "close")
            handler.end_headers()
            while chunk := answer.read1(self.piece_bytes):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if is_chunked else chunk)
                handler.wfile.flush()
            if is_chunked:
                handler.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A receiver of webhooks, which answers 204."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._arrived = threading.Condition()
        self._server = Server(self._handle)
        self.url = f"{self._server.url}/hook"

    def stop(self) -> None:
        self._server.stop()

    def first(self) -> Received:
        return self.nth(1)

    def nth(self, count: int) -> Received:
        """Waits for a request, and returns it; the first one has the number 1."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.received) >= count, timeout=120)
            return self.received[count - 1]

    def _handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(204)
        handler.end_headers()
        with self._arrived:
            self.received.append(Received(dict(handler.headers.items()), body))
            self._arrived.notify_all()


def error_type(task: Task) -> str | None:
    return task["error"]["type"] if task["error"] else None


@dataclass(frozen=True)
class Account:
    key: str
    webhook_secret: str


def make_account(accounts_url: str, **options: str) -> Account:
    """Asks the suite for an account of the service; `credit` is a decimal text."""
    connection = http.client.HTTPConnection(urlsplit(accounts_url).netloc)
    connection.request("POST", "/", json.dumps(options))
    account = json.loads(connection.getresponse().read())
    connection.close()
    return Account(**account)
