"""`backup` and `restore`: everything that people told and added, into one file and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from assistant.commands.common import error_console, print_text
from assistant.commands.option_groups import SettingsOptions
from assistant.settings import default_file, usual_file
from assistant.upkeep.archive import MODELS, SETTINGS, Manifest
from assistant.upkeep.backup import write_backup
from assistant.upkeep.restore import RESTORED_SETTINGS, restore_backup


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as sequitur.zip; it must be new.")],
    keys: Annotated[
        bool, typer.Option("--keys", help="Also write the keys of servers, which are left out otherwise.")
    ] = False,
    *,
    options: SettingsOptions,
) -> None:
    """Write everything that people told and added to one file; the page may go on running.

    It holds facts, conversations, logins and tokens (as hashes), documents with their index, the settings file, and the
    servers that were added, without their keys. Only its owner can read it; it is not encrypted. What can be made or
    fetched again is left out: models, the starter library, vectors, caches.
    """
    settings = options.load_settings()
    archive = write_backup(settings, file, options.settings_file or default_file(), keys=keys)
    _say_on_error_stream(f"{file} ({decimal(archive.size)}) holds {_contents(archive.manifest)}.")
    _say_on_error_stream(
        f"Left out: models, the starter library, vectors and caches ({decimal(archive.left_out)}), which are made or "
        "fetched again when they are needed."
    )


def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    *,
    options: SettingsOptions,
) -> None:
    """Put back what `backup` wrote; what is there now is kept aside.

    Every file is checked by its hash before anything is replaced. The page may be up: an answer that it is writing goes
    on where the backup has its conversation, people stay logged in whose password is still theirs, and open tabs show
    what was put back once they are loaded anew. The settings file is put back only where there is none; otherwise it
    goes into the data folder, to be compared.
    """
    settings = options.load_settings()
    restored = restore_backup(file, settings, options.settings_file or default_file() or usual_file())
    _say_on_error_stream(
        f"{settings.data_dir} holds {_contents(restored.manifest)} now, as of {restored.manifest.made[:16]}."
    )
    if restored.settings:
        unused_note = (
            ", which is not used; compare it with yours" if restored.settings.name == RESTORED_SETTINGS else ""
        )
        _say_on_error_stream(f"The settings of the backup are in {restored.settings}{unused_note}.")
    for old_folder in restored.kept:
        _say_on_error_stream(f"What was there before is in {old_folder}; delete it once you don't need it.")


def _contents(manifest: Manifest) -> str:
    file_names = {entry.name for entry in manifest.files}
    contents = ["the database", f"libraries: {', '.join(manifest.libraries) or 'none'}"]
    contents += ["the settings file"] if SETTINGS in file_names else []
    contents += [f"the added servers {'with' if manifest.keys else 'without'} keys"] if MODELS in file_names else []
    return "; ".join(contents)


def _say_on_error_stream(sentence: str) -> None:
    print_text(sentence, error_console)
