"""The header of a GGUF file: what the model is, without loading it.

The format is documented in ggml's docs/gguf.md. The `gguf` package reads it too, but takes six seconds over the
vocabulary of a 1.5B model; only the plain values are needed here, and arrays are skipped.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from assistant.errors import ModelError

Value = int | float | bool | str

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_MAX_STRING = 1 << 24


def header(path: Path) -> dict[str, Value]:
    """The key-value pairs of the file, arrays left out.

    Raises:
        ModelError: the file can't be read, is not GGUF, or ends within its header.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != _MAGIC:
                raise ModelError(f"{path} is not a GGUF model file; give the path of one, or a name of the catalogue.")
            file.read(4 + 8)  # version, number of tensors
            pairs = (_pair(file) for _ in range(_number(file, "<Q")))
            return {key: value for key, value in pairs if value is not None}
    except OSError as error:
        raise ModelError(f"The model file {path} can't be read ({error.strerror}).") from error
    except (struct.error, UnicodeDecodeError, KeyError, ValueError) as error:
        raise ModelError(f"The model file {path} is cut short or damaged; fetch it again.") from error


def kv_bytes(header: dict[str, Value]) -> int:
    """Bytes that one token takes in a 16-bit key-value cache; 0 if the header doesn't say."""
    kind = header.get("general.architecture", "")

    def read(key: str) -> int:
        return int(header.get(f"{kind}.{key}", 0))

    heads = read("attention.head_count")
    width = read("attention.key_length") or (read("embedding_length") // heads if heads else 0)
    return 2 * 2 * read("block_count") * (read("attention.head_count_kv") or heads) * width


def _pair(file: BinaryIO) -> tuple[str, Value | None]:
    key = _string(file)
    kind = _number(file, "<I")
    if kind == _ARRAY:
        _skip_array(file)
        return key, None
    return key, _string(file) if kind == _STRING else _number(file, _FORMATS[kind])


def _skip_array(file: BinaryIO) -> None:
    kind, count = _number(file, "<I"), _number(file, "<Q")
    if kind == _STRING:
        for _ in range(count):
            file.seek(_number(file, "<Q"), 1)
    else:
        file.seek(count * struct.calcsize(_FORMATS[kind]), 1)


def _string(file: BinaryIO) -> str:
    length = _number(file, "<Q")
    if length > _MAX_STRING:
        raise ValueError(length)
    raw = file.read(length)
    if len(raw) < length:
        raise ValueError(length)
    return raw.decode("utf-8")


def _number(file: BinaryIO, form: str) -> int:
    value: int = struct.unpack(form, file.read(struct.calcsize(form)))[0]
    return value
