"""The tables of docs/results that `reproduce` makes: their definitions, and whether their code has changed since.

They are defined in `docs/results/tables.toml`, for example:

    [tables.intents]
    title = "Questions told from talk and writing"
    page = "gates.md"
    modules = ["assistant/steps/intent.py", "prompts/intents.toml"]
    columns = { messages = "messages", accuracy = "accuracy" }
    runs = [{ label = "test", command = "evaluate intents --messages tests/data/intents.jsonl --split test" }]

The rows of this table are stored in `docs/results/rows/intents.jsonl.gz`: first a record of how they were made
(`Provenance`), then a line for each row, with ids in place of the texts of the data. `docs/results/tables/intents.md`
is written from that record alone.
"""

from __future__ import annotations

import gzip
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from assistant.errors import DataError, SettingsError
from assistant.experiment.datasets import StrictRecord, records
from assistant.experiment.report import markdown, markdown_table
from assistant.experiment.runs import Row, jsonl

L = TypeVar("L", bound=StrictRecord)
ROOT = Path(__file__).parents[2]
RESULTS_FOLDER = Path("docs/results")
REGISTRY = RESULTS_FOLDER / "tables.toml"
# Fields with texts of the data, at any depth of a row.
TEXT_FIELDS = frozenset((
    *("text", "question", "utterance", "claim", "evidence", "title", "fact", "gold", "document", "draft"),
    *("queries", "query", "reply", "history", "digests", "used", "listed", "replaces"),
))  # fmt: skip


class Data(StrictRecord):
    """A file of data that is not in the repository: what it is, and where it comes from."""

    what: str
    source: str
    licence: str
    made: str = ""


class Derived(StrictRecord):
    """Some lines of a file: the `last` so many, or those whose text under `by` has a SHA-256 divisible by three.

    A title is that of the first gold passage, from the corpus `titles`.
    """

    of: str
    by: Literal["question", "title"] = "question"
    titles: str = ""
    last: int = 0


class Command(StrictRecord):
    """One row of a table: its label, and its command, in which {data} and {work} stand for folders."""

    label: str
    command: str


class EntryColumns(StrictRecord):
    """A row for each entry of a summary under `of`: columns of the entry, and of places `beside` it ({}: its name)."""

    of: str
    columns: dict[str, str]
    beside: dict[str, str] = Field(default_factory=dict)


class Table(StrictRecord):
    """A table: the `page` that describes it, the code and files that it measures, and its columns.

    A column is a path in the command's summary ("loops.question.R@1"). `environment` are settings for its commands.
    """

    title: str
    page: str
    modules: tuple[str, ...] = Field(min_length=1)
    columns: dict[str, str]
    each: EntryColumns | None = None
    runs: tuple[Command, ...] = Field(min_length=1)
    data: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    seed: int = 0
    model: str = ""
    note: str = ""


class Registry(StrictRecord):
    """All tables, and the data that they are made from."""

    tables: dict[str, Table]
    data: dict[str, Data] = Field(default_factory=dict)
    derived: dict[str, Derived] = Field(default_factory=dict)

    def table(self, name: str) -> Table:
        """The table of this name.

        Raises:
            SettingsError: there is none; the message lists those there are.
        """
        if name not in self.tables:
            raise SettingsError(f"'{name}' is no table; there are: {', '.join(self.tables)}.")
        return self.tables[name]


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the rows of a table were made. `code` is the hash of its modules, `data` that of each file that it read."""

    table: str
    commit: str
    code: str
    day: str
    model: str
    seed: int
    data: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)


def read_registry(root: Path = ROOT) -> Registry:
    """The tables of a checkout; see `read_list`."""
    return read_list(root / REGISTRY, Registry)


def read_list(path: Path, kind: type[L]) -> L:
    """A TOML list of a checkout, validated as this kind.

    Raises:
        SettingsError: only the package is installed, without the list.
        DataError: the file is broken.
    """
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(
            "The tables come with Sequitur's source alone: run `python -m assistant reproduce` in a checkout of it."
        ) from error
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise DataError(f"{path} is broken: {error}.") from error


def code_hash(table: Table, root: Path = ROOT) -> str:
    """The hash of the files that a table measures.

    Raises:
        DataError: one of its patterns matches nothing.
    """
    digest = sha256()
    for path in _files(table, root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(table: Table, root: Path) -> list[Path]:
    files: set[Path] = set()
    for pattern in table.modules:
        matching = {path for path in root.glob(pattern) if path.is_file()}
        if not matching:
            raise DataError(f"{REGISTRY}: '{pattern}' of '{table.title}' names no file; mend it.")
        files |= matching
    return sorted(files)


def commit_of(root: Path = ROOT) -> str:
    """The commit of the checkout, "" if it is none, followed by + if tracked files have changed since."""
    commit = _git(root, "rev-parse", "HEAD")
    return commit + "+" * bool(commit and _git(root, "status", "--porcelain", "--untracked-files=no"))


def state(name: str, table: Table, root: Path = ROOT) -> tuple[bool, str]:
    """Whether a table's rows were made with the present code, and a sentence about it."""
    provenance = read_provenance(name, root)
    if provenance is None:
        return False, f"not made anew: its figures stand in {table.page} alone"
    origin = f"of {provenance.day}, commit {provenance.commit[:9] or 'unknown'}"
    if provenance.code == code_hash(table, root):
        return True, f"as the code is ({origin})"
    log = _git(root, "log", "--format=%s", f"{provenance.commit.rstrip('+')}..HEAD", "--", *table.modules)
    commits = log.splitlines() if provenance.commit else []
    changes = f": {len(commits)} commits since, the last '{commits[0]}'" if commits else ""
    return False, f"older than the code that it measures ({origin}){changes}"


def _git(root: Path, *arguments: str) -> str:
    try:
        process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def rows_file(name: str, root: Path = ROOT) -> Path:
    """The file of a table's rows."""
    return root / RESULTS_FOLDER / "rows" / f"{name}.jsonl.gz"


def read_provenance(name: str, root: Path = ROOT) -> Provenance | None:
    """How a table's rows were made; None if none are stored."""
    path = rows_file(name, root)
    return Provenance(**next(records(path))[1]) if path.exists() else None


def read_stored_rows(name: str, root: Path = ROOT) -> list[Row]:
    """A table's stored rows.

    Raises:
        DataError: none are stored.
    """
    return [row for _, row in records(rows_file(name, root))][1:]


def store_rows(provenance: Provenance, rows: Iterable[Row], table: Table, root: Path = ROOT) -> tuple[Path, Path]:
    """Write the rows and the table; the same rows give the same bytes."""
    path = rows_file(provenance.table, root)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [asdict(provenance), *(without_texts(row) for row in rows)]
    path.write_bytes(gzip.compress(jsonl(lines).encode(), mtime=0))
    return path, write_page(provenance, table, root)


def write_page(provenance: Provenance, table: Table, root: Path = ROOT) -> Path:
    """Write the table as Markdown."""
    page = root / RESULTS_FOLDER / "tables" / f"{provenance.table}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(rendered(provenance, table), encoding="utf-8")
    return page


def without_texts(value: Any) -> Any:
    """A row, or a value in it, as it is stored: without texts of the data."""
    if isinstance(value, Mapping):
        return {name: without_texts(field_value) for name, field_value in value.items() if name not in TEXT_FIELDS}
    return [without_texts(item) for item in value] if isinstance(value, list) else value


def rendered(provenance: Provenance, table: Table) -> str:
    """The table as Markdown, with the commands that made it."""
    name = provenance.table
    commands = "\n".join(f"    python -m assistant {run['command']}" for run in provenance.runs)
    lead = (
        f"Made by `python -m assistant reproduce {name}` on {provenance.day}, commit"
        f" {provenance.commit[:9] or 'unknown'}; model: {provenance.model or 'none'}; seed {provenance.seed}."
        f" [Its rows](../rows/{name}.jsonl.gz), [more](../{table.page})."
        " `reproduce --check` tells whether the code has changed since."
    )
    plots = [f"![{Path(plot).stem}]({plot})" for run in provenance.runs for plot in run.get("plots", ())]
    lines = [line for run in provenance.runs for line in _lines(table, run["label"], run["summary"])]
    entry_columns = (*table.each.columns, *table.each.beside) if table.each else ()
    columns = markdown_table(["", *table.columns, *entry_columns], lines)
    return "\n\n".join(filter(None, [f"# {table.title}", lead, columns, table.note, commands, *plots])) + "\n"


def _lines(table: Table, label: str, summary: Mapping[str, Any]) -> list[list[str]]:
    cells = [_cell(summary, path) for path in table.columns.values()]
    if not table.each:
        return [[label, *cells]]
    lines = []
    for name, entry in _value_at(summary, table.each.of).items():
        entry_cells = [_cell(entry, path) for path in table.each.columns.values()]
        beside_cells = [_cell(summary, path.format(name)) for path in table.each.beside.values()]
        lines.append([f"{label}: {name}", *cells, *entry_cells, *beside_cells])
    return lines


def _cell(summary: Any, path: str) -> str:
    return markdown({"": _value_at(summary, path)}).strip()


def _value_at(value: Any, path: str) -> Any:
    """The value at "a.b.c" in a summary, where names may contain dots themselves; None if it is missing."""
    if not path or not isinstance(value, Mapping):
        return value if not path else None
    for name in sorted(value, key=lambda key: -len(str(key))):
        if path == name or path.startswith(f"{name}."):
            return _value_at(value[name], path[len(name) + 1 :])
    return None


def derive(registry: Registry, names: Sequence[str], data: Path, folder: Path) -> None:
    """Write into a folder those files among `names` that are derived from others."""
    for name in (file_name for file_name in names if file_name in registry.derived):
        rule, path = registry.derived[name], folder / name
        title_records = records(data / rule.titles) if rule.titles else ()
        titles = {str(record["id"]): str(record["title"]) for _, record in title_records}
        lines = [record for _, record in records(data / rule.of)]
        lines = lines[-rule.last :] if rule.last else [line for line in lines if _belongs(line, rule, titles)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(jsonl(lines), encoding="utf-8")


def _belongs(record: Mapping[str, Any], rule: Derived, titles: Mapping[str, str]) -> bool:
    text = str(record["question"]) if rule.by == "question" else titles[record["gold"][0]]
    return int(sha256(text.encode()).hexdigest(), 16) % 3 == 0
