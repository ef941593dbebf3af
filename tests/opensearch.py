"""A stand-in for OpenSearch: answers over HTTP as its documentation says, and refuses what that doesn't know.

None can be had where these tests run. What it holds it ranks by BM25 with the similarity of the index, over words that
are cut at everything but letters and digits, and by cosine.
"""

from __future__ import annotations

import base64
import json
import math
import re
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

Told = tuple[int, Any]
OPTIONS = {"ignore_unavailable", "allow_no_indices", "search_type", "scroll", "size"}


class RefusedError(Exception):
    def __init__(self, status: int, kind: str) -> None:
        super().__init__(kind)
        self.status, self.kind = status, kind


class StandIn:
    """Serves at `address` until it is left. `asked` holds the method and path of every request.

    `spoil` may answer a request itself, given its method and path, for what goes wrong.
    """

    def __init__(self, user: str = "", password: str = "", certificate: tuple[Path, Path] | None = None) -> None:
        self.certificate = certificate
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""
        self.indexes: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.sent: list[str] = []  # what bulk requests did, such as "index" or "delete", an entry a document
        self.spoil: Callable[[str, str], Told | None] = lambda method, path: None
        self.refuse: dict[str, Any] | None = None  # what the next document of a bulk request is told
        self._lock = Lock()

    def __enter__(self) -> StandIn:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.address = f"http{'s' if self.certificate else ''}://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        there = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, told = there.answer(self.command, self.path, body, self.headers.get("Authorization", ""))
                kind, text = ("text/plain", told) if isinstance(told, str) else ("application/json", json.dumps(told))
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", f"{kind}; charset=UTF-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):  # who asked has given up
                    self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler

    def answer(self, method: str, path: str, body: bytes, login: str) -> Told:
        split = urlsplit(path)
        self.asked.append((method, split.path))
        if self.login and login != self.login:
            return 401, "Unauthorized"
        if spoilt := self.spoil(method, split.path):
            return spoilt
        options = {name: values[0] for name, values in parse_qs(split.query).items()}
        try:
            with self._lock:
                return 200, self._done(method, split.path.strip("/").split("/"), options, body)
        except RefusedError as refusal:
            cause = {"type": refusal.kind, "reason": "as the stand-in says"}
            return refusal.status, {"error": {"root_cause": [cause], **cause}, "status": refusal.status}

    def _done(self, method: str, path: list[str], options: dict[str, str], body: bytes) -> Any:
        if strange := set(options) - OPTIONS:
            raise RefusedError(400, f"unrecognized parameter {strange}")
        given = json.loads(body) if body and path != ["_bulk"] else {}
        match method, path:
            case "POST", ["_bulk"]:
                return self._bulk(body)
            case "POST", [names, "_search"] if names != "_search":
                return self._search(self._named(names, options), options, given)
            case (("POST" | "DELETE"), ["_search", "scroll"]):
                return self._hits([], given["scroll_id"])  # all came at once
            case "PUT", [name]:
                return self._create(name, given)
            case method, [names, *what]:
                return self._of(method, what, self._named(names, options), given)
        raise RefusedError(405, "method_not_allowed")

    def _of(self, method: str, what: list[str], names: list[str], given: dict[str, Any]) -> Any:
        """What is asked of indexes that are there."""
        if (method, what) == ("GET", ["_mapping"]):
            return {one: {"mappings": self.indexes[one]["mappings"]} for one in names}
        for one in names:
            if (method, what) == ("DELETE", []):
                del self.indexes[one], self.documents[one]
            elif (method, what) == ("PUT", ["_mapping"]):
                self.indexes[one]["mappings"].update(given)
            elif (method, what) != ("POST", ["_refresh"]):
                raise RefusedError(405, "method_not_allowed")
        return {"acknowledged": True, "_shards": {"total": 1, "successful": 1, "failed": 0}}

    def _named(self, names: str, options: dict[str, str]) -> list[str]:
        found = []
        for name in names.split(","):
            if "*" in name:
                found += [one for one in self.indexes if re.fullmatch(name.replace(".", r"\.").replace("*", ".*"), one)]
            elif name in self.indexes:
                found.append(name)
            elif options.get("ignore_unavailable") != "true":
                raise RefusedError(404, "index_not_found_exception")
        return found

    def _create(self, name: str, made: dict[str, Any]) -> Any:
        if name in self.indexes:
            raise RefusedError(400, "resource_already_exists_exception")
        if name != name.lower() or re.search(r'[\\/*?"<>| ,#:]', name):
            raise RefusedError(400, "invalid_index_name_exception")
        for field in made["mappings"]["properties"].values():
            if field["type"] not in {"keyword", "text", "integer", "nested", "knn_vector"}:
                raise RefusedError(400, "mapper_parsing_exception")
        self.indexes[name], self.documents[name] = made, {}
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _bulk(self, body: bytes) -> Any:
        lines, items = iter(body.decode().strip().split("\n")), []
        for line in lines:
            [(action, where)] = json.loads(line).items()
            index, key = where["_index"], where["_id"]
            if len(key.encode()) > 512:
                raise RefusedError(400, "illegal_argument_exception")
            status = 200
            self.sent.append(action)
            if action == "index":
                source, fields = json.loads(next(lines)), self.indexes[index]["mappings"]["properties"]
                if refused := self.refuse:
                    self.refuse = None
                    items.append({action: {"_index": index, "_id": key, **refused}})
                    continue
                assert set(source) <= set(fields), "strict_dynamic_mapping_exception"
                self.documents[index][key] = source
            else:
                status = 200 if self.documents[index].pop(key, None) else 404
            items.append({action: {"_index": index, "_id": key, "status": status}})
        return {"took": 1, "errors": any(next(iter(one.values()))["status"] >= 300 for one in items), "items": items}

    def _search(self, names: list[str], options: dict[str, str], body: dict[str, Any]) -> Any:
        if strange := set(body) - {"size", "query", "_source", "sort"}:
            raise RefusedError(400, f"parsing_exception {strange}")
        [(kind, asked)] = body["query"].items()
        if kind == "match_all":
            every = [(name, key, 1.0) for name in names for key in self.documents[name]]
            return self._hits(self._sources(every, {"hash"}), "all")
        assert body["sort"] == [{"_score": "desc"}, {"id": "asc"}]
        if kind == "match":
            assert options == {"search_type": "dfs_query_then_fetch"}
            scored = self._by_words(names, asked["contents"]["query"])
        elif kind == "nested":
            assert (asked["path"], asked["score_mode"]) == ("pieces", "max")
            scored = self._by_meaning(names, asked["query"]["knn"]["pieces.vector"])
        else:
            raise RefusedError(400, "parsing_exception")
        scored = sorted(scored, key=lambda one: (-one[2], self.documents[one[0]][one[1]]["id"]))[: body["size"]]
        hidden = set(body["_source"]["excludes"])
        names_of = {one for name, key, _ in scored for one in self.documents[name][key]}
        return self._hits(self._sources(scored, names_of - hidden))

    def _sources(self, scored: list[tuple[str, str, float]], fields: set[str]) -> list[dict[str, Any]]:
        return [
            {
                "_index": name,
                "_id": key,
                "_score": score,
                "_source": {one: value for one, value in self.documents[name][key].items() if one in fields},
            }
            for name, key, score in scored
        ]

    def _hits(self, hits: list[dict[str, Any]], scroll: str = "") -> Any:
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        told = {"took": 1, "timed_out": False, "_shards": shards, "hits": {"total": {"value": len(hits)}, "hits": hits}}
        return told | ({"_scroll_id": scroll} if scroll else {})

    def _by_words(self, names: list[str], query: str) -> list[tuple[str, str, float]]:
        bags = {
            (name, key): Counter(_words(document["contents"]))
            for name in names
            for key, document in self.documents[name].items()
        }
        length = sum(bag.total() for bag in bags.values()) / max(len(bags), 1)
        found = []
        for (name, key), bag in bags.items():
            knobs = self.indexes[name]["settings"]["index"]["similarity"]["default"]
            score = 0.0
            for word in set(_words(query)) & set(bag):
                holding = sum(word in one for one in bags.values())
                rare = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
                norm = knobs["k1"] * (1 - knobs["b"] + knobs["b"] * bag.total() / length)
                score += rare * bag[word] / (bag[word] + norm)
            if score > 0:
                found.append((name, key, score))
        return found

    def _by_meaning(self, names: list[str], asked: dict[str, Any]) -> list[tuple[str, str, float]]:
        wanted = np.array(asked["vector"])
        return [
            (name, key, max((1 + float(np.dot(wanted, piece["vector"]))) / 2 for piece in document["pieces"]))
            for name in names
            for key, document in self.documents[name].items()
        ]


def _words(text: str) -> list[str]:
    return [
        word for word in re.findall(r"\w+", text.lower()) if word not in {"a", "is", "of", "and", "in", "the", "for"}
    ]
