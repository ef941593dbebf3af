"""The address of a server, however it was typed."""

from __future__ import annotations

from urllib.parse import urlsplit

from assistant.errors import ModelError

_SUFFIXES = ("/chat/completions", "/completions", "/models", "/v1")


def root_of(address: str) -> str:
    """The address without what every OpenAI-compatible server has behind it, such as "/v1".

    Raises:
        ModelError: it is empty or none, or holds a name or a key.
    """
    stripped = address.strip()
    if not stripped:
        raise ModelError("No server is named; set llm.server to its address, such as http://127.0.0.1:11434.")
    parts = urlsplit(stripped if "://" in stripped else f"http://{stripped}")
    if parts.username is not None or parts.query:
        raise ModelError("The address of the server may hold no name and no key; write the key into llm.api_key.")
    if parts.scheme not in {"http", "https"} or not _has_host(parts.netloc):
        raise ModelError(f"'{stripped}' is no address of a server; write it as http://127.0.0.1:11434.")
    path = parts.path.rstrip("/")
    for suffix in _SUFFIXES:
        path = path.removesuffix(suffix)
    return f"{parts.scheme}://{parts.netloc}{path}"


def _has_host(netloc: str) -> bool:
    try:
        parts = urlsplit(f"//{netloc}")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
