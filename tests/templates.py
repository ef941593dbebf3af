"""SmolLM2 with other chat templates: replies that begin within a thought, after one, or after one if told so."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.sax.saxutils import quoteattr

_BEGIN = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n'}}{% endfor %}"
    "{{'<|im_start|>assistant\\n'}}"
)
_OVER = "{{'<think>\\n\\n</think>\\n\\n'}}"
OPENED, CLOSED = _BEGIN + "{{'<think>\\n'}}", _BEGIN + _OVER
TOLD = f"{_BEGIN}{{% if enable_thinking is defined and not enable_thinking %}}{_OVER}{{% endif %}}"


def file_with(template: str, source: Path, path: Path) -> Path:
    """A GGUF file with another chat template, which is filled up so that all else stays where it is."""
    content, key = source.read_bytes(), b"tokenizer.chat_template"
    at = content.index(key) + len(key) + 4
    size = int.from_bytes(content[at : at + 8], "little")
    filled = template + "{#" + " " * (size - len(template) - 4) + "#}"
    assert len(filled) == size
    path.write_bytes(content[: at + 8] + filled.encode() + content[at + 8 + size :])
    return path


def folder_with(template: str, source: Path, folder: Path) -> Path:
    """A model's folder with another chat template; the weights stay where they are."""
    folder.mkdir()
    for file in source.iterdir():
        if file.suffix == ".safetensors":
            (folder / file.name).symlink_to(file)
        elif file.suffix != ".jinja":
            shutil.copy(file, folder)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "chat_template": template}))
    return folder


def openvino_with(template: str, source: Path, folder: Path) -> Path:
    """A folder of a model converted for OpenVINO with another chat template; the weights stay where they are."""
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).symlink_to(file)
    tokenizer = folder / "openvino_tokenizer.xml"
    content = tokenizer.read_text(encoding="utf-8")
    tokenizer.unlink()
    changed, count = re.subn("(?<=<chat_template value=).*(?= />)", lambda _: quoteattr(template), content)
    assert count == 1
    tokenizer.write_text(changed, encoding="utf-8")
    return folder
