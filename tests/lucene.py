"""Small Lucene indexes as others make them: by Anserini's own indexer, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
# As python -m pyserini.index.lucene, on the Java that comes with Sequitur.
INDEXER = """
import sys
from assistant.retrieve import jvm
jvm.call(lambda: jvm.java("io.anserini.index.IndexCollection").main(sys.argv[1:]))
"""


def lucene_index(
    folder: Path, records: Iterable[Mapping[str, object]], *options: str, collection: str = "JsonCollection"
) -> Path:
    """Index records as the makers of such an index do; its folder, which stands in `folder`."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "passages.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ["-collection", collection, "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
    where = ["-input", str(folder / "in"), "-index", str(folder / "index")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", INDEXER, *words, *where, *options], check=True, env=environment)
    return folder / "index"
