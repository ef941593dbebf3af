import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_generated_parts_are_as_the_code_is() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "-I", str(ROOT), "README.md"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, "run: python -m cogapp -r -I . README.md\n" + done.stdout + done.stderr


def test_every_requirement_is_justified() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## Dependencies")[1].split("## ")[0]
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        name = line.split("#")[0].split("=")[0].split("[")[0].rstrip("<>~ ")
        if name:
            assert name in table, f"{name} has no reason in the README's table"
