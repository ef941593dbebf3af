import re
from pathlib import Path

import pytest
from cogapp import Cog

ROOT = Path(__file__).parent.parent
GENERATED = ["docs/commands.md", "docs/settings.md", "CONTRIBUTING.md"]


@pytest.mark.parametrize("file", GENERATED)
def test_generated_parts_are_as_the_code_is(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    status = Cog().main(["cog", "--check", "-I", str(ROOT), file])
    assert status == 0, f"run: python -m cogapp -r -I . {' '.join(GENERATED)}"


def test_every_requirement_is_justified() -> None:
    table = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    files = [ROOT / name for name in ("requirements.txt", "requirements-postgres.txt")]
    for line in "\n".join(file.read_text(encoding="utf-8") for file in files).splitlines():
        name = line.split("#")[0].split("=")[0].split("[")[0].rstrip("<>~ ")
        if name:
            assert name in table, f"{name} has no reason in docs/dependencies.md"


@pytest.mark.parametrize("file", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))])
def test_links_lead_somewhere(file: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", file.read_text(encoding="utf-8")):
        assert (file.parent / link).exists(), link


SAFETY = ["SECURITY.md", *(f"docs/results/{name}.md" for name in ("attacks", "asvs", "vulnerabilities"))]


@pytest.mark.parametrize("file", SAFETY)
def test_tests_that_are_named_are_there(file: str) -> None:
    tests = "".join(test.read_text(encoding="utf-8") for test in (ROOT / "tests").rglob("*.py"))
    text = (ROOT / file).read_text(encoding="utf-8")
    for path in re.findall(r"tests/[\w/]+\.py", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(test_\w+|Test\w+)`", text):
        assert re.search(rf"(?:def|class) {name}\b", tests), name
