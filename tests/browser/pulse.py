"""How quickly an address answers all the while that something else goes on."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Event, Thread

EVERY = 0.2
# It does the same small work for each request and nothing else: what its slowest answer takes longer than its fastest
# is how much the machine's other work holds everybody up.
CONTROL = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sum(range(500_000))
        self.send_response(204)
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass
class Pulse:
    """Asks for an address every fifth of a second, each time in a thread of its own, until it is told to stop."""

    url: str
    seconds: list[float] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def start(self) -> None:
        self._threads: list[Thread] = []
        self._clock = Thread(target=self._beat)
        self._clock.start()

    def stop(self) -> None:
        self.over.set()
        self._clock.join()
        for thread in self._threads:
            thread.join()

    def _beat(self) -> None:
        while not self.over.wait(EVERY):
            thread = Thread(target=self._ask)
            thread.start()
            self._threads.append(thread)

    def _ask(self) -> None:
        since = time.perf_counter()
        with urllib.request.urlopen(self.url, timeout=300) as answer:
            answer.read()
        self.seconds.append(time.perf_counter() - since)


@contextmanager
def control(folder: Path) -> Iterator[Pulse]:
    """The pulse of a server that does nothing else."""
    with Popen([sys.executable, "-c", CONTROL], cwd=folder, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout
        yield Pulse(f"http://127.0.0.1:{int(process.stdout.readline())}/")
        process.kill()
