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

from assistant.commands.common import DataDir, error_console, print_text, settings_of
from assistant.errors import DataError
from assistant.evaluation import looked_at, tables
from assistant.evaluation.table_changes import field_changes
from assistant.evaluation.tables import Provenance, Registry, Table
from assistant.experiment.datasets import fingerprint, records
from assistant.experiment.runs import CLAIM, ROWS, Row
from assistant.settings import PREFIX

_DATA_DIR_VARIABLE = f"{PREFIX}DATA_DIR"


def reproduce(  # noqa: PLR0913 - one parameter an option
    *,
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="Tables to make; without any, all are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(help="The folder of data that comes from elsewhere; docs/results/tables.toml says where from."),
    ] = None,
    check: Annotated[
        bool,
        Option("--check", help="Report which tables are older than the code that they measure; exit code 1 if any is."),
    ] = False,
    gate: Annotated[
        bool,
        Option(
            "--gate",
            help="Make the tables in another folder, and report what changed against the stored rows; exit code 1 if"
            " anything did beyond chance.",
        ),
    ] = False,
    pages: Annotated[
        bool, Option("--pages", help="Write the tables' Markdown again from the stored rows; nothing is measured.")
    ] = False,
    looked: Annotated[
        bool, Option("--looked-at", help="Write docs/results/looked_at.json from looked_at.toml and the data.")
    ] = False,
    checkout: Annotated[Path, Option(hidden=True, help="The checkout whose tables are meant.")] = tables.ROOT,
    data_dir: DataDir = None,
) -> None:
    """Make tables of docs/results again, from raw files to Markdown, and store their rows; or list them."""
    registry = tables.read_registry(checkout)
    if looked:
        listed = tables.read_list(checkout / looked_at.LIST_FILE, looked_at.LookedAtList)
        print_text(str(looked_at.write(looked_at.ids_of(listed, registry, data or Path()), checkout)))
        return
    chosen_tables = {name: registry.table(name) for name in names or registry.tables}
    if pages:
        _write_pages(chosen_tables, checkout)
        return
    if check or not names:
        _print_states(chosen_tables, check, checkout)
        return
    for table in chosen_tables.values():
        _check_data(registry, table, data)
    work = settings_of(None, data_dir).data_dir.absolute() / "reproduce"
    maker = Maker(registry, checkout, (data or Path()).absolute(), work)
    if gate:
        # what was made on another day may have been made by another model or library
        _gate(replace(maker, work=work / f"gate-{_today()}"), chosen_tables)
        return
    for name, table in chosen_tables.items():
        for path in tables.store_rows(*maker.make(name, table), table, checkout):
            print_text(str(path))


def _print_states(chosen_tables: dict[str, Table], check: bool, checkout: Path) -> None:
    """Print of each table whether it was made with the present code.

    Raises:
        Exit: with 1 if this is a check and a table was not.
    """
    states = {name: tables.state(name, table, checkout) for name, table in chosen_tables.items()}
    for name, (_, state_text) in states.items():
        print_text(f"{name}: {state_text}.")
    if check and not all(is_current for is_current, _ in states.values()):
        raise Exit(1)


def _gate(maker: Maker, chosen_tables: dict[str, Table]) -> None:
    """Print what changed in tables that were made before.

    Raises:
        Exit: with 1 if something changed beyond chance.
        DataError: a table has no stored rows to compare with.
    """
    stored_rows = {name: tables.read_stored_rows(name, maker.checkout) for name in chosen_tables}
    any_beyond_chance = False
    for name, table in chosen_tables.items():
        provenance, rows = maker.make(name, table)
        changes = field_changes(stored_rows[name], [tables.without_texts(row) for row in rows], provenance.seed)
        any_beyond_chance |= any(change.beyond_chance for change in changes)
        descriptions = [f"{change}{' (beyond chance)' if change.beyond_chance else ''}" for change in changes]
        for description in descriptions or ["as before"]:
            print_text(f"{name}: {description}.")
    if any_beyond_chance:
        raise Exit(1)


def _write_pages(chosen_tables: dict[str, Table], checkout: Path) -> None:
    for name, table in chosen_tables.items():
        if provenance := tables.read_provenance(name, checkout):
            print_text(str(tables.write_page(provenance, table, checkout)))


def _check_data(registry: Registry, table: Table, data: Path | None) -> None:
    """See that all files are there before anything is run.

    Raises:
        DataError: one is missing; the message says what it is and where it comes from.
    """
    for name in table.data:
        if not data or not (data / name).exists():
            file = registry.data[name]
            raise DataError(
                f"'{table.title}' needs {name} in the folder of --data: {file.what}, from {file.source}"
                f" ({file.licence}). {file.made}".rstrip()
            )


@dataclass(frozen=True)
class Maker:
    """Makes tables of a checkout; `work` is the folder for their runs, which go on where they were."""

    registry: Registry
    checkout: Path
    data: Path
    work: Path

    def make(self, name: str, table: Table) -> tuple[Provenance, list[Row]]:
        """Run a table's commands; returns how and with what it was made, and the rows.

        Raises:
            DataError: one of them failed, or a file can't be read.
        """
        code, commit = tables.code_hash(table, self.checkout), tables.commit_of(self.checkout)
        folder = self.work / f"{name}-{code[:12]}"  # another code makes other rows
        folder.mkdir(parents=True, exist_ok=True)
        derived_names = [derived_name for derived_name, rule in self.registry.derived.items() if rule.of in table.data]
        tables.derive(self.registry, derived_names, self.data, folder)
        rows: list[Row] = []
        runs: list[dict[str, Any]] = []
        models = {table.model} - {""}
        for n, run in enumerate(table.runs, 1):
            print_text(f"{name}: {run.label}", error_console)
            run_folder = folder / str(n)
            summary = self._run(run.command, run_folder, folder, table.environment)
            rows += [{"run": run.label, **row} for _, row in records(run_folder / ROWS)]
            if (run_folder / CLAIM).exists():
                models |= {json.loads((run_folder / CLAIM).read_text(encoding="utf-8")).get("model", "")} - {""}
            # with which files it was made, and what was left out, says nothing to others
            shared_summary = {key: value for key, value in summary.items() if key not in {"run", "left_out"}}
            plots = self._plots(run_folder, name, n)
            runs.append({"label": run.label, "command": run.command, "summary": shared_summary, "plots": plots})
        digests = {file_name: fingerprint(self.data / file_name) for file_name in table.data}
        return Provenance(name, commit, code, _today(), ", ".join(sorted(models)), table.seed, digests, runs), rows

    def _run(self, command: str, run_folder: Path, folder: Path, environment: dict[str, str]) -> dict[str, Any]:
        """Run a command of this program; returns the summary that it prints as JSON.

        Raises:
            DataError: it failed; what it said stands above.
        """
        # a measurement that takes no time to speak of refuses what is there already
        if (run_folder / ROWS).exists() and not (run_folder / CLAIM).exists():
            shutil.rmtree(run_folder)
        (folder / "usual.toml").write_text("", encoding="utf-8")
        arguments = shlex.split(command.format(data=self.data, work=folder))
        arguments += ["--out", str(run_folder), "--json", "--settings", str(folder / "usual.toml")]
        # what somebody has set for themselves is not what is measured
        set_names = {name for name in os.environ if name.startswith(PREFIX)} - {_DATA_DIR_VARIABLE}
        environ = {name: value for name, value in os.environ.items() if name not in set_names}
        process = subprocess.run(
            [sys.executable, "-m", "assistant", *arguments],
            cwd=self.checkout,
            env=environ | {"PYTHONPATH": str(tables.ROOT)} | environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if process.returncode:
            raise DataError(f"`python -m assistant {command}` failed; mend what it says above.")
        summary: dict[str, Any] = json.loads(process.stdout)
        return summary

    def _plots(self, run_folder: Path, name: str, n: int) -> list[str]:
        """The plots of a run, copied beside the table."""
        folder = self.checkout / tables.RESULTS_FOLDER / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        return [
            Path(shutil.copy(plot, folder / f"{name}-{n}-{plot.name}")).name
            for plot in sorted(run_folder.glob("*.png"))
        ]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
