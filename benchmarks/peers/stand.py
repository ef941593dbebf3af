"""What all systems share: one llama-server with one model, and one address that embeds, on this computer.

llama-server runs in a process of its own; the embedder answers from a thread of this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import httpx

from assistant.errors import ModelError
from assistant.protocols import Embedder
from benchmarks.peers.wire import Stand

# Prompts of several systems stay in memory side by side, as they would where each is alone.
SLOTS, CONTEXT = 4, 8192
# Tokens of a reply, for those that ask for no end.
LONGEST = 512


@contextmanager
def standing(model: Path, embedder: Embedder, tokenizer: Path, threads: int) -> Iterator[Stand]:
    """The stand, for as long as the block lasts; `tokenizer` is the embedder's folder.

    Raises:
        ModelError: the model is no GGUF file, or can't be served.
    """
    if model.suffix != ".gguf":
        raise ModelError(f"{model} can't be served to other programs; give a GGUF model with --model.")
    with _llama_server(model, threads) as llm, _embedding(embedder) as embeddings:
        dimensions = len(embedder.encode(["one"])[0])
        yield Stand(f"{llm}/v1", model.stem, f"{embeddings}/v1", embedder.name, dimensions, str(tokenizer))


def tokens(stand: Stand) -> tuple[int, int]:
    """Tokens that the model has read and written so far; what it still knew from before is not read again."""
    metrics = httpx.get(stand.llm.removesuffix("v1") + "metrics", timeout=60.0).text
    counts = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line and not line.startswith("#"))
    read, written = counts["llamacpp:prompt_tokens_total"], counts["llamacpp:tokens_predicted_total"]
    return int(float(read)), int(float(written))


@contextmanager
def _llama_server(model: Path, threads: int) -> Iterator[str]:
    command = [sys.executable, "-m", __name__, str(model), str(threads)]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip() if process.stdout else ""
        if not address:
            raise ModelError(f"llama.cpp can't serve {model}; its own words are above.")
        yield address
    finally:
        process.kill()
        process.communicate()


def _serve() -> None:
    """Serve the model that the command line names until the input ends."""
    import xllamacpp  # noqa: PLC0415 - this process alone has it

    params = xllamacpp.CommonParams()
    params.model.path, params.cpuparams.n_threads = sys.argv[1], int(sys.argv[2])
    params.cpuparams_batch.n_threads = int(sys.argv[2])
    params.n_ctx, params.n_parallel, params.n_predict = CONTEXT * SLOTS, SLOTS, LONGEST
    params.port, params.fit_params, params.ui, params.verbosity = 0, False, False, -1
    params.endpoint_metrics, params.model_alias = True, {Path(sys.argv[1]).stem}
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


@contextmanager
def _embedding(embedder: Embedder) -> Iterator[str]:
    one_at_a_time = Lock()

    class Embeddings(BaseHTTPRequestHandler):
        """POST /v1/embeddings, as OpenAI has it."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            with one_at_a_time:
                vectors = embedder.encode(texts).tolist()
            data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            response = json.dumps({"object": "list", "model": embedder.name, "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    _serve()
