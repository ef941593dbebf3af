"""Reads passages from indexes that were made elsewhere, by the field names of each collection's JSON records.

| collection, as Anserini calls it | a record |
|---|---|
| JsonCollection (MS MARCO V1, DPR's Wikipedia, ClueWeb22 of iKAT) | `{"id", "contents"}`, perhaps `title`, `url` |
| BeirFlatCollection, BeirMultifieldCollection | `{"_id", "title", "text"}` |
| MsMarcoV2PassageCollection | `{"pid", "passage", "docid"}` |
| MsMarcoV2DocCollection | `{"docid", "url", "title", "headings", "body"}` or, of a segment, `"segment"` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assistant.types import Passage

_IDS = ("id", "_id", "pid", "docid")
_TEXTS = ("contents", "text", "passage", "segment", "body")


def external_passage(record: Mapping[str, Any], score: float = 0.0, source: str = "") -> Passage:
    """The passage in a record.

    Args:
        record: the stored JSON, parsed.
        score: its score.
        source: the source to name for records without an address.

    Raises:
        KeyError: the record has no id or no text, under any of the names above.
    """
    key, contents = _first_value(record, _IDS), _first_value(record, _TEXTS)
    title = str(record.get("title") or "")
    text = contents.removeprefix(f"{title}\n") if title else contents
    return Passage(key, title, text, score, source=str(record.get("url") or source or key))


def _first_value(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if record.get(name) is not None:
            return str(record[name])
    raise KeyError(names[0])
