"""`index`: adds documents to a library, removes them, and lists what it holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from assistant.commands.common import DEFAULT_LIBRARY, error_console, print_table, print_text
from assistant.commands.option_groups import SettingsOptions
from assistant.commands.progress_bars import bar_of_bytes
from assistant.errors import LibraryError
from assistant.library.index import Outcome, add_documents, list_documents, remove_documents
from assistant.library.scans import BY_OCR
from assistant.library.shelves import library_names, remove_library
from assistant.library.watched import Happenings
from assistant.settings import Settings
from assistant.text.sentences import clean


def index(
    paths: Annotated[list[str] | None, typer.Argument(help="Files and folders.")] = None,
    *,
    library: Annotated[str, typer.Option(help="The library that they go to.")] = DEFAULT_LIBRARY,
    remove: Annotated[bool, typer.Option("--remove", help="Take these documents out of the library.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the library with all that it holds.")] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Show the libraries, the documents of this one, and what became of files in a followed folder.",
        ),
    ] = False,
    published: Annotated[
        str | None,
        typer.Option(
            "--prebuilt", metavar="NAME", help="Fetch this index, which the makers of Pyserini publish, as a library."
        ),
    ] = None,
    options: SettingsOptions,
) -> None:
    """Index documents, so that they can be searched and asked about with --library.

    Reads .txt, .md, .html, .pdf, .docx, .xlsx, .csv, .pptx, .eml, .epub, .jsonl ({id, title, contents} a line) and
    .tsv (id, text, title). A changed file replaces what was indexed of it; what can't be read is reported and skipped.
    """
    settings = options.load_settings()
    if show:
        _show(library, settings)
        _show_happenings(settings)
    elif delete:
        _delete(library, paths, settings)
    elif published:
        _fetch(published, paths, settings)
    elif not paths or not all(paths):
        raise LibraryError("Name the files or folders to index, or use --list to see what is indexed.")
    elif remove:
        _report(remove_documents(library, paths, settings), library)
    else:
        with bar_of_bytes("Indexing") as progress:
            outcomes = add_documents(library, [Path(path) for path in paths], settings, progress)
        _report(outcomes, library)


def _delete(library: str, paths: list[str] | None, settings: Settings) -> None:
    if paths:
        raise LibraryError("--delete deletes a whole library and takes no documents; use --remove for those.")
    remove_library(library, settings)
    print_text(f"The library '{library}' is deleted.")


def _fetch(name: str, paths: list[str] | None, settings: Settings) -> None:
    from assistant.library.prebuilt import fetch, prebuilt  # noqa: PLC0415 - starts the JVM

    if paths:
        raise LibraryError("--prebuilt fetches a whole library and takes no documents; index those into another.")
    published_index = prebuilt(name)
    print_text(
        f"{published_index.about} {published_index.passages:,} passages, {decimal(published_index.size)} to fetch.",
        error_console,
    )
    state = "is ready" if fetch(published_index, settings, bar_of_bytes) else "was there already"
    print_text(f"The library {state}; search it with: --library {published_index.library}")


def _show(library: str, settings: Settings) -> None:
    print_text("Libraries: " + (", ".join(library_names(settings)) or "none yet"))
    documents = list_documents(library, settings)
    if not documents:
        print_text(f"The library '{library}' holds no documents.")
        return
    rows = []
    for document in documents:
        note = BY_OCR if document.by_ocr else document.note
        name = f"{document.name} ({note})" if note else document.name
        rows.append((name, str(document.passages), clean(document.path) or "-"))
    print_table(("document", "passages", "from"), rows)


def _show_happenings(settings: Settings) -> None:
    """What became of the files of the folder that the page follows, if it ever followed one."""
    rows = [
        (happening.time.astimezone().strftime("%Y-%m-%d %H:%M"), clean(happening.name), happening.what, happening.why)
        for happening in Happenings(settings).all()
    ]
    if rows:
        print_table(("followed folder, when", "file", "what", "why"), rows)


def _report(outcomes: list[Outcome], library: str) -> None:
    rows = ((clean(outcome.name), outcome.status, str(outcome.passages or ""), outcome.reason) for outcome in outcomes)
    print_table(("document", "what", "passages", "why"), rows)
    if all(outcome.status == "skipped" for outcome in outcomes):
        raise LibraryError(f"Nothing was changed in the library '{library}'; the table says why.")
    counts = Counter(outcome.status for outcome in outcomes)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    print_text(f"Library '{library}': {summary}.")
