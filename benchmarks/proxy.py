"""Several pages behind one address: HAProxy, as `docs/haproxy.cfg` has it, in front of light pages on one database."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from assistant.errors import SettingsError
from assistant.settings import Settings
from benchmarks.light import Served, ahead, served

CONFIGURATION = Path(__file__).parents[1] / "docs" / "haproxy.cfg"
STARTS = 30.0  # seconds within which the proxy knows that pages are there


class Worker:
    """A page at a port of its own, which can be killed and started again."""

    def __init__(self, settings: Settings, pause: float, before: Callable[[], None] | None = None) -> None:
        """`before` is called in its process each time it starts."""
        self._settings, self._pause, self._before = settings, pause, before
        self._stack = ExitStack()
        self.start()

    def start(self) -> None:
        """Serve; returns once it answers.

        Raises:
            SequiturError: it could not start.
        """
        self.page: Served = self._stack.enter_context(served(self._settings, self._pause, self._before))

    def kill(self) -> None:
        """As if the power had failed: it can't tell anybody."""
        self.page.kill()
        self._stack.close()


@contextmanager
def workers(
    count: int, settings_at: Callable[[int], Settings], pause: float, clock: float = 0.0
) -> Iterator[tuple[str, list[Worker]]]:
    """So many pages behind one address, which comes with them; `settings_at` gives the settings of one by its port.

    The clock of the last one is `clock` seconds ahead.

    Raises:
        SequiturError: HAProxy is not installed, or a page could not start.
    """
    ports = [free_port() for _ in range(count)]
    running_workers = list[Worker]()
    try:
        for port in ports:
            before_start = partial(ahead, clock) if clock and port == ports[-1] else None
            running_workers.append(Worker(settings_at(port), pause, before_start))
        with proxied(ports) as url:
            yield url, running_workers
    finally:
        for worker in running_workers:
            worker.kill()


@contextmanager
def proxied(ports: Sequence[int]) -> Iterator[str]:
    """HAProxy in front of pages at these ports of this computer; gives its address.

    Raises:
        SettingsError: it is not installed, or does not start.
    """
    program = shutil.which("haproxy")
    if program is None:
        raise SettingsError("Several workers are reached through HAProxy; install it first (apt install haproxy).")
    port = free_port()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(configured(CONFIGURATION.read_text(encoding="utf-8"), port, ports), encoding="utf-8")
        process = subprocess.Popen([program, "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(f"{url}/readyz")
            yield url
        finally:
            process.kill()
            process.wait()


def configured(text: str, port: int, ports: Sequence[int]) -> str:
    """A configuration of HAProxy with this port instead of its own, without TLS, and with pages at these ports."""
    lines = [line.removesuffix(" secure") for line in text.splitlines() if not line.startswith("  server ")]
    lines = [f"  bind 127.0.0.1:{port}" if line.startswith("  bind ") else line for line in lines]
    lines += [f"  server w{n} 127.0.0.1:{page_port} cookie w{n}" for n, page_port in enumerate(ports)]
    return "\n".join(lines) + "\n"


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + STARTS
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            if httpx.get(url).status_code == 200:
                return
        time.sleep(0.2)
    raise SettingsError("HAProxy does not start, or finds no page; run `haproxy -c -f docs/haproxy.cfg` to see why.")


def free_port() -> int:
    """A port of this computer where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
