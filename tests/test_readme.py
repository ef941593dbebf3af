import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = ["docs/commands.md", "docs/settings.md", "CONTRIBUTING.md"]


@pytest.mark.parametrize("file", GENERATED)
def test_generated_parts_are_as_the_code_is(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "-I", str(ROOT), file],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"run: python -m cogapp -r -I . {' '.join(GENERATED)}\n" + done.stdout + done.stderr


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
