"""`reproduce`: makes a table of docs/results on this commit, from raw files to Markdown, and stores its rows."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from assistant.commands.common import DataDir, say, settings_of, talk
from assistant.errors import DataError
from assistant.evaluation import looked_at, tables
from assistant.evaluation.table_changes import field_changes
from assistant.evaluation.tables import Made, Registry, Table
from assistant.experiment.datasets import fingerprint, records
from assistant.experiment.runs import CLAIM, ROWS, Row
from assistant.settings import PREFIX

_KEPT = f"{PREFIX}DATA_DIR"


def reproduce(  # noqa: PLR0913 - one parameter an option
    *,
    names: Annotated[list[str] | None, Argument(metavar="NAME", help="Tables to make; none: list all.")] = None,
    data: Annotated[
        Path | None,
        Option(help="The folder of data that comes from elsewhere; docs/results/tables.toml says where from."),
    ] = None,
    check: Annotated[
        bool, Option("--check", help="Say which tables are older than the code that they measure; 1 if any is.")
    ] = False,
    gate: Annotated[
        bool,
        Option(
            "--gate",
            help="Make them aside, and say what moved against the rows that are kept; 1 if anything did beyond chance.",
        ),
    ] = False,
    pages: Annotated[
        bool, Option("--pages", help="Write the tables' Markdown anew from the rows that are kept; nothing is run.")
    ] = False,
    looked: Annotated[
        bool, Option("--looked-at", help="Write docs/results/looked_at.json from looked_at.toml and the data.")
    ] = False,
    checkout: Annotated[Path, Option(hidden=True, help="The checkout whose tables are meant.")] = tables.ROOT,
    data_dir: DataDir = None,
) -> None:
    """Make tables of docs/results anew, from raw files to Markdown, and keep their rows; or list them."""
    registry = tables.read_registry(checkout)
    if looked:
        found = looked_at.ids_of(tables.read_list(checkout / looked_at.LIST, looked_at.List), registry, data or Path())
        say(str(looked_at.write(found, checkout)))
        return
    chosen = {name: registry.table(name) for name in names or registry.tables}
    if pages:
        _written(chosen, checkout)
        return
    if check or not names:
        _tell(chosen, check, checkout)
        return
    for table in chosen.values():
        _check_data(registry, table, data)
    work = settings_of(None, data_dir).data_dir.absolute() / "reproduce"
    maker = Maker(registry, checkout, (data or Path()).absolute(), work)
    if gate:
        # what was made on another day may have been made by another model or library
        _gate(replace(maker, work=work / f"gate-{_today()}"), chosen)
        return
    for name, table in chosen.items():
        for path in tables.keep(*maker.make(name, table), table, checkout):
            say(str(path))


def _tell(chosen: dict[str, Table], check: bool, checkout: Path) -> None:
    """Print of each table whether it was made with the present code.

    Raises:
        Exit: with 1 if this is a check and a table was not.
    """
    states = {name: tables.state(name, table, checkout) for name, table in chosen.items()}
    for name, (_, says) in states.items():
        say(f"{name}: {says}.")
    if check and not all(is_current for is_current, _ in states.values()):
        raise Exit(1)


def _gate(maker: Maker, chosen: dict[str, Table]) -> None:
    """Print what changed in tables that were made before.

    Raises:
        Exit: with 1 if something changed beyond chance.
        DataError: a table has no stored rows to compare with.
    """
    before = {name: tables.kept_rows(name, maker.checkout) for name in chosen}
    beyond = False
    for name, table in chosen.items():
        made, rows = maker.make(name, table)
        found = field_changes(before[name], [tables.without_texts(row) for row in rows], made.seed)
        beyond |= any(one.beyond_chance for one in found)
        told = [f"{one}{' (beyond chance)' if one.beyond_chance else ''}" for one in found]
        for says in told or ["as before"]:
            say(f"{name}: {says}.")
    if beyond:
        raise Exit(1)


def _written(chosen: dict[str, Table], checkout: Path) -> None:
    for name, table in chosen.items():
        if made := tables.made_of(name, checkout):
            say(str(tables.write_page(made, table, checkout)))


def _check_data(registry: Registry, table: Table, data: Path | None) -> None:
    """See that all files are there before anything is run.

    Raises:
        DataError: one is missing; the message says what it is and where it comes from.
    """
    for name in table.data:
        if not data or not (data / name).exists():
            listed = registry.data[name]
            made = f" {listed.made}" if listed.made else ""
            raise DataError(
                f"'{table.title}' needs {name} in the folder of --data: {listed.what}, from {listed.source}"
                f" ({listed.licence}).{made}"
            )


@dataclass(frozen=True)
class Maker:
    """Makes tables of a checkout; `work` is the folder for their runs, which go on where they were."""

    registry: Registry
    checkout: Path
    data: Path
    work: Path

    def make(self, name: str, table: Table) -> tuple[Made, list[Row]]:
        """Run a table's commands; how that was, and their rows.

        Raises:
            DataError: one of them failed, or a file can't be read.
        """
        code, commit = tables.code_of(table, self.checkout), tables.commit_of(self.checkout)
        folder = self.work / f"{name}-{code[:12]}"  # another code makes other rows
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [one for one, rule in self.registry.derived.items() if rule.of in table.data]
        tables.derive(self.registry, wanted, self.data, folder)
        rows: list[Row] = []
        runs: list[dict[str, Any]] = []
        models = {table.model} - {""}
        for n, run in enumerate(table.runs, 1):
            say(f"{name}: {run.label}", talk)
            into = folder / str(n)
            summary = self._run(run.command, into, folder, table.environment)
            rows += [{"run": run.label, **row} for _, row in records(into / ROWS)]
            if (into / CLAIM).exists():
                models |= {json.loads((into / CLAIM).read_text(encoding="utf-8")).get("model", "")} - {""}
            # with which files it was made, and what was left out, says nothing to others
            shared = {key: found for key, found in summary.items() if key not in {"run", "left_out"}}
            told = {"label": run.label, "command": run.command, "summary": shared}
            runs.append({**told, "plots": self._plots(into, name, n)})
        digests = {one: fingerprint(self.data / one) for one in table.data}
        return Made(name, commit, code, _today(), ", ".join(sorted(models)), table.seed, digests, runs), rows

    def _run(self, command: str, into: Path, folder: Path, environment: dict[str, str]) -> dict[str, Any]:
        """What a command of this program tells as JSON.

        Raises:
            DataError: it failed; what it said stands above.
        """
        # a measurement that takes no time to speak of refuses what is there already
        if (into / ROWS).exists() and not (into / CLAIM).exists():
            shutil.rmtree(into)
        (folder / "usual.toml").write_text("", encoding="utf-8")
        words = shlex.split(command.format(data=self.data, work=folder))
        words += ["--out", str(into), "--json", "--settings", str(folder / "usual.toml")]
        # what somebody has set for themselves is not what is measured
        plain = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) or name == _KEPT}
        found = subprocess.run(
            [sys.executable, "-m", "assistant", *words],
            cwd=self.checkout,
            env=plain | {"PYTHONPATH": str(tables.ROOT)} | environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if found.returncode:
            raise DataError(f"`python -m assistant {command}` failed; mend what it says above.")
        told: dict[str, Any] = json.loads(found.stdout)
        return told

    def _plots(self, into: Path, name: str, n: int) -> list[str]:
        """The plots of a run, copied beside the table."""
        folder = self.checkout / tables.FOLDER / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(one, folder / f"{name}-{n}-{one.name}")).name for one in sorted(into.glob("*.png"))]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
