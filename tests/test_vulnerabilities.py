"""Known vulnerabilities: what is installed is mended, no floor admits what isn't, and CI asks the databases."""

from __future__ import annotations

import json
import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests import audit
from tests.vulnerabilities import TABLE, Known, table

ROOT = Path(__file__).parents[1]
# Those that serve the page or ask for what does: what they require bounds what pip may choose.
SERVING = ("gradio", "fastapi", "starlette", "uvicorn", "readability-lxml", "httpx2")


def name_of(one: Known) -> str:
    return f"{one.package}-{one.version}"


def floors() -> dict[str, list[Version]]:
    """The least versions that are asked for, by package."""
    lines = (line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines())
    asked = [Requirement(line) for line in lines if line]
    asked += [Requirement(line) for package in SERVING for line in requires(package) or () if "extra ==" not in line]
    found: dict[str, list[Version]] = {}
    for one in asked:
        least = [Version(spec.version) for spec in one.specifier if spec.operator in {">=", "==", "~="}]
        found.setdefault(canonicalize_name(one.name), []).extend(least)
    return found


def test_every_line_of_the_table_is_read() -> None:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(table()) == len(lines) - 1 > 40
    assert all(one.numbers for one in table())


@pytest.mark.parametrize("known", table(), ids=name_of)
def test_what_is_installed_is_mended(known: Known) -> None:
    """A line that says "open" is told as soon as it is so no longer."""
    assert known.mended(Version(version(known.package))) is not known.open


@pytest.mark.parametrize("known", [one for one in table() if not one.open], ids=name_of)
def test_no_floor_admits_what_is_not_mended(known: Known) -> None:
    assert known.mended(max(floors()[known.package])), f"raise {known.package} in requirements.txt"


def test_no_picture_of_anybody_is_opened_with_pillow() -> None:
    """What the line about pillow rests on: it only writes what PDFium has drawn, and no component takes pictures."""
    components = r"gr\.(?:Image|ImageEditor|ImageSlider|Gallery|AnnotatedImage|MultimodalTextbox|Chatbot|Sketchpad)\b"
    used = re.compile(rf"\bPIL\b|Image\.open|{components}")
    files = [file for room in ("assistant", "ptkb") for file in (ROOT / room).rglob("*.py")]
    assert [file.name for file in files if used.search(file.read_text(encoding="utf-8"))] == []
    assert [file.name for file in files if "to_pil" in file.read_text(encoding="utf-8")] == ["pdf_pages.py"]


def auditing(folder: Path, *answers: str) -> str:
    """A program in place of pip-audit that writes these, as pip-audit 2.10.1 does; "" for none."""
    script, [osv, pypi] = folder / "pip-audit", answers
    for name, answer in (("osv", osv), ("pypi", pypi)):
        (folder / name).write_text(answer)
    script.write_text(f'#!/bin/sh\nfor last; do :; done\ncat {folder}/"$2" > "$last"\necho "$2 is away" >&2\n')
    script.chmod(0o755)
    return str(script)


def found(*vulnerabilities: dict[str, object]) -> str:
    one = {"name": "gradio", "version": "6.31.0", "vulns": list(vulnerabilities)}
    return json.dumps({"dependencies": [one], "fixes": []})


SKIPPED = json.dumps({"dependencies": [{"name": "gradio", "skip_reason": "Dependency not found on PyPI"}], "fixes": []})
NEW = {"id": "PYSEC-2026-9999", "aliases": ["CVE-2026-999999"], "fix_versions": ["7.0"], "description": ""}
EXCUSED = {"id": "PYSEC-2026-8888", "aliases": ["CVE-2026-134825"], "fix_versions": ["6.32.0"], "description": ""}


@pytest.mark.parametrize(
    ("answers", "status", "told"),
    [
        ((found(NEW, EXCUSED), ""), 1, "gradio 6.31.0: PYSEC-2026-9999 (CVE-2026-999999), mended in 7.0"),
        (("", found(NEW)), 1, "1 vulnerabilities without a reason in the table"),
        ((SKIPPED, found(EXCUSED)), 0, "0 vulnerabilities"),
        ((SKIPPED, SKIPPED), 77, "SKIPPED: known vulnerabilities were not looked up"),
        ((SKIPPED, SKIPPED), 77, "osv knew none of 1 packages; pypi knew none of 1 packages"),
        (("", ""), 77, "osv: osv is away; pypi: pypi is away"),
    ],
)
def test_findings_without_a_reason_fail_and_silence_is_a_skip_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: tuple[str, str], status: int, told: str
) -> None:
    assert audit.main(auditing(tmp_path, *answers), 20) == status
    assert told in capsys.readouterr().out


def test_a_database_that_never_answers_is_waited_for_no_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "pip-audit"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    assert audit.main(str(script), 0.2) == audit.SKIPPED
    assert "osv took more than 0 s; pypi took more than 0 s" in capsys.readouterr().out
