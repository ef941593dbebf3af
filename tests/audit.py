"""Asks pip-audit about the packages of this environment: `python tests/audit.py PATH-OF-PIP-AUDIT`.

Ends with 1 where it finds a vulnerability that the table doesn't call open. Where no database answers it ends with 77,
the status by which automake knows a skipped test, and says why: nothing was looked up, and whoever is without a network
can't mend that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if __name__ == "__main__":  # run as a file, beside the package of tests
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.vulnerabilities import table

SERVICES, PATIENCE = ("osv", "pypi"), 25  # seconds for each
SKIPPED = 77  # .ci/run goes on after it, and tells the reason once more at the end
NOBODY = "SKIPPED: known vulnerabilities were not looked up, since no database answered: "


def asked(audit: str, service: str, seconds: float) -> tuple[list[dict[str, Any]], str]:
    """The packages that a database knows with their vulnerabilities, and why there are none."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        packages = sysconfig.get_path("purelib")
        words = [audit, "-s", service, "--path", packages, "--timeout", "5", "--progress-spinner", "off"]
        try:
            done = subprocess.run(
                [*words, "-f", "json", "-o", str(out)], timeout=seconds, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            return [], f"{service} took more than {seconds:.0f} s"
        if not out.exists() or not out.read_text():
            return [], f"{service}: {(done.stderr.strip().splitlines() or ['no answer'])[-1][:200]}"
        found = json.loads(out.read_text())["dependencies"]
    # a database that can't be reached through a mirror "doesn't know" any package, which is no answer
    known = [one for one in found if "skip_reason" not in one]
    return known, "" if known else f"{service} knew none of {len(found)} packages"


def unknown(known: Sequence[dict[str, Any]]) -> list[str]:
    """Lines about those vulnerabilities that the table doesn't call open."""
    excused = {number for one in table() if one.open for number in one.numbers}
    return [
        f"{package['name']} {package['version']}: {one['id']} ({', '.join(one['aliases'])}), mended in "
        f"{', '.join(one['fix_versions']) or 'no version'}"
        for package in known
        for one in package["vulns"]
        if not excused & {one["id"], *one["aliases"]}
    ]


def main(audit: str, seconds: float = PATIENCE) -> int:
    """Ask one database after the other until one answers; the status to end with."""
    silent = list[str]()
    for service in SERVICES:
        known, why = asked(audit, service, seconds)
        if known:
            lines = unknown(known)
            told = f"{service} knows {len(known)} packages; {len(lines)} vulnerabilities without a reason in the table"
            print("\n".join([told, *lines]))  # noqa: T201 - its purpose
            return int(bool(lines))
        silent.append(why)
    print(NOBODY + "; ".join(silent))  # noqa: T201
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
