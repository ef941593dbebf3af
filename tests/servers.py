"""Servers of language models for tests: llama-server for real, and stand-ins that answer as documentation says."""

from __future__ import annotations

import datetime
import ipaddress
import json
import math
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

Json = dict[str, Any]
KEY = "a-secret-of-the-tests"
ROOT = Path(__file__).parents[1]


@dataclass
class Running:
    """A real llama-server in a process of its own."""

    address: str
    process: subprocess.Popen[str]


@contextmanager
def llama_server(path: Path, context: int = 1024, slots: int = 4, port: int = 0) -> Iterator[Running]:
    """xllamacpp's server with this model, which wants `KEY`; at a free port, or at this one."""
    given = [str(one) for one in (path, context, slots, port)]
    command = [sys.executable, "-c", "from tests.servers import serve; serve()", *given]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    try:
        yield Running(process.stdout.readline().strip(), process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def vllm_server(python: Path, folder: Path, context: int = 1024, slots: int = 4) -> Iterator[Running]:
    """The real vLLM of another environment with the model of this folder, on a CPU; it wants `KEY`."""
    address = f"http://127.0.0.1:{_free_port()}"
    # what it stores of a context, in GiB; and it asks nobody for anything
    about = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_API_KEY": KEY,
    }
    options = {"--host": "127.0.0.1", "--port": address.rpartition(":")[2], "--served-model-name": "smollm2-135m",
               "--max-model-len": context, "--max-num-seqs": slots, "--generation-config": "vllm"}  # fmt: skip
    given = [str(word) for option in options.items() for word in option]
    # `vllm serve` of vllm-cpu 0.32 ends at once, since it looks for a package called vllm
    module = "vllm.entrypoints.openai.api_server"
    command = [str(python), "-m", module, "--model", str(folder), *given, "--enforce-eager"]
    # what this environment has is not for the other one, and its engine is a process of its own
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        command, cwd=folder, env={**kept, **about}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    said: list[str] = []
    Thread(target=lambda: said.extend(process.stdout), daemon=True).start()
    try:
        _wait_for(f"{address}/health", process, said)
        yield Running(address, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(address: str, process: subprocess.Popen[str], said: Sequence[str], seconds: float = 600) -> None:
    """Wait until the server is well.

    Raises:
        RuntimeError: it ended, or took too long; with the last lines that it wrote.
    """
    since = time.monotonic()
    while process.poll() is None and time.monotonic() - since < seconds:
        with suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(1)
    raise RuntimeError("the server did not start:\n" + "".join(said[-20:]))


def serve() -> None:
    """Run the server that the command line asks for until the input ends."""
    import xllamacpp

    path, (context, slots, port) = sys.argv[1], map(int, sys.argv[2:])
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = context * slots, slots
    params.n_batch = params.n_ubatch = 64
    params.port, params.api_keys = port, [KEY]
    params.fit_params = params.ui = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


# --- stand-ins -----------------------------------------------------------------------------------------------------


@dataclass
class Request:
    """What a stand-in was asked."""

    path: str
    body: Json
    headers: dict[str, str]


class Reply:
    """What a stand-in answers: a status with an object or a text, or parts that are sent one by one; 0 is to hang up.

    A part that is a number is waited for, in seconds; `None` breaks the connection off.
    """

    def __init__(
        self, content: object = None, status: int = 200, parts: Sequence[object] | None = None, **headers: str
    ) -> None:
        self.content, self.status, self.parts, self.headers = content, status, parts, headers


Answer = Callable[[Request], Reply]


@dataclass
class StandIn:
    """A server whose paths are answered by functions; whatever has none is 404. It keeps what it was asked.

    `closed` is set when somebody leaves before a reply is over.
    """

    answers: dict[str, Answer]
    key: str = ""
    certificate: tuple[Path, Path] | None = None
    asked: list[Request] = field(default_factory=list)
    closed: Event = field(default_factory=Event)

    def __enter__(self) -> StandIn:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stand_in": self}))
        self._server.daemon_threads = True
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://127.0.0.1:{self._server.server_port}"

    def reply(self, request: Request) -> Reply:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return Reply({"error": {"message": f"Incorrect API key provided: {self.key[:4]}"}}, 401)
        answer = self.answers.get(request.path)
        return answer(request) if answer else Reply({"error": {"message": "not found"}}, 404)

    def bodies(self, path: str) -> list[Json]:
        return [one.body for one in self.asked if one.path == path]


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        self.stand_in.asked.append(Request(self.path, body, {k.lower(): v for k, v in self.headers.items()}))
        self._send(self.stand_in.reply(self.stand_in.asked[-1]))

    def _send(self, reply: Reply) -> None:
        if not reply.status:
            self.close_connection = True
            return None
        if reply.parts is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                return self._send_parts(reply)
            self.stand_in.closed.set()
            self.close_connection = True
            return None
        text = reply.content if isinstance(reply.content, str) else json.dumps(reply.content)
        self.send_response(reply.status)
        kind = "text/html" if text.startswith("<html") else "application/json"
        for name, value in {
            "content-type": kind,
            "content-length": str(len(text.encode())),
            **reply.headers,
        }.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())
        return None

    def _send_parts(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for part in reply.parts:
            if part is None:
                self.close_connection = True
                return
            if isinstance(part, int | float):
                time.sleep(part)
                continue
            data = part.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def said(text: str) -> list[str]:
    """A text in the pieces that it is sent in."""
    return [word if n == 0 else f" {word}" for n, word in enumerate(text.split(" "))]


def event(**values: object) -> str:
    return f"data: {json.dumps(values)}\n\n"


def delta(finish: str | None = None, logprob: float | None = None, **content: object) -> str:
    told = {"content": [{"token": "x", "logprob": logprob}]} if logprob is not None else None
    return event(choices=[{"index": 0, "delta": content, "finish_reason": finish, "logprobs": told}])


def streamed(text: str, *, prompt: int = 0, logprob: float | None = None) -> list[object]:
    """The parts of a whole reply of an OpenAI-compatible server, with its usage at the end, as asked for."""
    words = said(text)
    usage = event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": len(words)})
    return [*(delta(content=word, logprob=logprob) for word in words), delta("stop"), usage, "data: [DONE]\n\n"]


def choices(tokens: dict[str, float], **usage: int) -> Json:
    """The reply to a request for the likeliest tokens."""
    top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in tokens.items()]
    told = {"content": [{"token": top[0]["token"], "logprob": top[0]["logprob"], "top_logprobs": top}]} if top else None
    message = {"role": "assistant", "content": next(iter(tokens), "Yes")}
    return {"choices": [{"index": 0, "message": message, "logprobs": told, "finish_reason": "length"}], "usage": usage}


Says = Callable[[list[Json]], str]


# How many tokens a server says it has read of a prompt that has so many.
Tells = Callable[[int], int]


def plain(
    says: Says, *, top: dict[str, float] | None = None, models: Sequence[str] = ("small",), tells: Tells = int
) -> dict[str, Answer]:
    """Any OpenAI-compatible server; without `top` it tells no probabilities, as LM Studio."""

    def chat(request: Request) -> Reply:
        read = tells(_words(request.body["messages"]))
        if not request.body.get("stream"):
            return Reply(choices(top or {}, prompt_tokens=read))
        return Reply(parts=streamed(says(request.body["messages"]), prompt=read))

    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in models]}
    return {"/v1/models": lambda _: Reply(listed), "/v1/chat/completions": chat}


def misbehaving(says: Says, *replies: Reply) -> dict[str, Answer]:
    """A server that gives these replies to what it is asked to write, one after the other, and answers from then on."""
    left, usual = list(replies), plain(says)
    good = usual["/v1/chat/completions"]

    def chat(request: Request) -> Reply:
        return left.pop(0) if left and request.body.get("stream") else good(request)

    return {**usual, "/v1/chat/completions": chat}


def lm_studio(says: Says, context: int = 8192) -> dict[str, Answer]:
    """LM Studio as its documentation says: no probabilities, and a list of its own with the contexts.

    The model is loaded when something is asked of it; only then it has the context that it was loaded with.
    """
    usual = plain(says, models=("for-vectors", "small"))
    state: Json = {"state": "not-loaded"}

    def chat(request: Request) -> Reply:
        state.update(state="loaded", loaded_context_length=context)
        return usual["/v1/chat/completions"](request)

    def listed(_: Request) -> Reply:
        small = {"id": "small", "type": "llm", "max_context_length": 131072, **state}
        other = {"id": "for-vectors", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048}
        return Reply({"object": "list", "data": [other, small]})

    return {**usual, "/v1/chat/completions": chat, "/api/v0/models": listed}


def vllm(says: Says, probabilities: dict[str, float], *, old: bool = False) -> dict[str, Answer]:
    """vLLM as its protocol says, of which every letter is a token; old releases know no `logprob_token_ids`."""

    def tokenize(request: Request) -> Reply:
        body = request.body
        text = body["prompt"] if "prompt" in body else "".join(f"<{one['content']}>" for one in body["messages"])
        return Reply({"count": len(text), "max_model_len": 4000, "tokens": [ord(letter) for letter in text]})

    def detokenize(request: Request) -> Reply:
        return Reply({"prompt": "".join(map(chr, request.body["tokens"]))})

    def chat(request: Request) -> Reply:
        if request.body["max_tokens"] > 4000:
            return Reply({"error": {"message": "max_tokens cannot be greater than max_model_len=4000."}}, 400)
        if request.body.get("stream"):
            return Reply(
                parts=streamed(says(request.body["messages"]), prompt=_words(request.body["messages"]), logprob=-0.5)
            )
        odds = {f"token_id:{ord(letter)}": p for letter, p in probabilities.items()}
        asked = request.body.get("logprob_token_ids")
        if asked and not old:
            odds = {f"token_id:{token}": odds.get(f"token_id:{token}", 1e-9) for token in asked}
        return Reply(choices(odds, prompt_tokens=9))

    def complete(request: Request) -> Reply:
        told = [None, *(-token / 100 for token in request.body["prompt"][1:]), -1.0]
        return Reply({"choices": [{"index": 0, "text": "", "logprobs": {"token_logprobs": told}}]})

    listed = {"object": "list", "data": [{"id": "small", "owned_by": "vllm", "max_model_len": 4000}]}
    return {
        "/v1/models": lambda _: Reply(listed),
        "/tokenize": tokenize,
        "/detokenize": detokenize,
        "/v1/chat/completions": chat,
        "/v1/completions": complete,
    }


def llama_router(says: Says, context: int = 2048) -> dict[str, Answer]:
    """llama-server with several models, as its documentation says: each request has to name one of them."""

    def named(answer: Answer) -> Answer:
        nameless = Reply({"error": {"message": "model name is missing from the request"}}, 400)
        return lambda request: answer(request) if request.body.get("model") == "org/small" else nameless

    def complete(request: Request) -> Reply:
        top = [{"id": token, "prob": 1.0} for token, _ in request.body["logit_bias"]]
        return Reply({"choices": [{"logprobs": {"content": [{"top_probs": top}]}}]})

    usual = plain(says, models=("org/small", "org/large"))
    return {
        "/v1/models": usual["/v1/models"],
        "/v1/chat/completions": named(usual["/v1/chat/completions"]),
        "/v1/completions": named(complete),
        "/apply-template": named(lambda request: Reply({"prompt": request.body["messages"][-1]["content"]})),
        "/tokenize": named(lambda request: Reply({"tokens": [ord(letter) for letter in request.body["content"]]})),
        "/props": lambda _: Reply({"role": "router", "default_generation_settings": {"n_ctx": 0}}),
        "/props?model=org%2Fsmall": lambda _: Reply({"default_generation_settings": {"n_ctx": context}}),
    }


def ollama(
    says: Says, *, top: dict[str, float] | None = None, context: int = 131072, tells: Tells = int
) -> dict[str, Answer]:
    """Ollama as its documentation says: lines of JSON, and an error instead of a cut where that is asked for."""

    def chat(request: Request) -> Reply:
        body = request.body
        if body["model"] != "small:latest":
            return Reply({"error": f"model '{body['model']}' not found"}, 404)
        size = _words(body["messages"])
        if size > body["options"]["num_ctx"]:
            assert body["truncate"] is False, "Ollama would cut the prompt"
            return Reply({"error": "the input length exceeds the context length"}, 400)
        if not body["stream"]:
            likeliest = [{"token": token, "logprob": math.log(p)} for token, p in (top or {}).items()]
            told = {"logprobs": [{**likeliest[0], "top_logprobs": likeliest}]} if top else {}
            return Reply({"message": {"content": "Yes"}, "done": True, "prompt_eval_count": tells(size), **told})
        words = said(says(body["messages"]))
        lines = [{"message": {"role": "assistant", "content": word}, "done": False} for word in words]
        last = {"message": {"content": ""}, "done": True, "done_reason": "stop"}
        counts = {"prompt_eval_count": tells(size), "eval_count": len(words)}
        return Reply(parts=[json.dumps(line) + "\n" for line in (*lines, {**last, **counts})])

    return {
        "/v1/models": lambda _: Reply({"data": [{"id": "small:latest", "owned_by": "library"}]}),
        "/api/version": lambda _: Reply({"version": "0.14.0"}),
        "/api/show": lambda _: Reply({"model_info": {"llama.context_length": context}}),
        "/api/chat": chat,
    }


def _words(messages: list[Json]) -> int:
    return sum(len(one["content"].split()) for one in messages)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate that nobody trusts, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.OID_COMMON_NAME, "nobody")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    pem, private = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain_key = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain_key))
    return pem, private
