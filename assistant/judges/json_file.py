"""What was fitted for a judge, stored beside its weights as JSON, which can be read and diffed and runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import TypeAdapter, ValidationError

from assistant.errors import DataError, ModelError, disk_errors_as


class JsonFile:
    """Base of the dataclasses that are kept so; `AGAIN` says what to do about a file that can't be used."""

    __slots__ = ()
    AGAIN: ClassVar[str]

    def save(self, path: Path) -> None:
        """Write it, in one step.

        Raises:
            DataError: the file can't be written.
        """
        partial = path.with_name(f"{path.name}.partial")
        with disk_errors_as(DataError, f"{path} can't be written", "choose another folder"):
            partial.write_bytes(TypeAdapter(type(self)).dump_json(self, indent=2) + b"\n")
            partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ModelError: the file can't be read, is broken, or is of another version.
        """
        with disk_errors_as(ModelError, f"{path} can't be read", cls.AGAIN):
            text = path.read_bytes()
        try:
            return TypeAdapter(cls).validate_json(text)
        except ValidationError as error:
            first_error = error.errors()[0]
            location = ".".join(map(str, first_error["loc"])) or "the file"
            raise ModelError(f"{path} can't be read ({location}: {first_error['msg']}); {cls.AGAIN}.") from error
