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
    try:
        parts = urlsplit(stripped if "://" in stripped else f"http://{stripped}")
    except ValueError as error:
        raise _no_address_error(stripped) from error
    if parts.username is not None or parts.query:
        raise ModelError("The address of the server may hold no name and no key; write the key into llm.api_key.")
    path = parts.path.rstrip("/")
    for suffix in _SUFFIXES:
        path = path.removesuffix(suffix)
    root = f"{parts.scheme}://{parts.netloc}{path}"
    if parts.scheme not in {"http", "https"} or not _can_be_met(root):
        raise _no_address_error(stripped)
    return root


def _can_be_met(root: str) -> bool:
    """Whether it has a host and a port that can be, also to the client that will ask there, which is stricter."""
    import httpx2  # noqa: PLC0415 - a tenth of a second

    try:
        parts, _ = urlsplit(root), httpx2.URL(root)
        return bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        return False


def _no_address_error(text: str) -> ModelError:
    return ModelError(f"'{text}' is no address of a server; write it as http://127.0.0.1:11434.")
