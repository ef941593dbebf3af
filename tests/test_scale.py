"""The simulation of queues against what queueing theory says, and the files that containers are made by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.errors import DataError
from assistant.settings import Settings
from benchmarks.commands import app
from benchmarks.scale import House, find_capacity, simulate

ROOT = Path(__file__).parents[1]
ALONE = House("one seat", 1, 1, 1, 0.0, 2.0, 1.0)


def throughput(people: int, seconds: float, pause: float) -> float:
    """Turns an hour of a closed queue with one server, by mean value analysis (Reiser and Lavenberg, 1980)."""
    waiting = rate = 0.0
    for n in range(1, people + 1):
        response = seconds * (1 + waiting)
        rate = n / (response + pause)
        waiting = rate * response
    return 3600 * rate


@pytest.mark.parametrize("people", [1, 5, 20])
def test_one_seat_is_as_theory_has_it(people: int) -> None:
    assert simulate(ALONE, people, 30.0, 8000).hourly == pytest.approx(throughput(people, 2.0, 30.0), rel=0.05)


def test_nobody_waits_where_there_are_seats_for_all() -> None:
    roomy = House("roomy", 50, 1, 100, 1.0, 2.0, 1.0)
    assert simulate(roomy, 20, 30.0, 8000).hourly == pytest.approx(3600 * 20 / 33, rel=0.05)


def test_no_house_answers_more_than_its_slowest_part() -> None:
    by_app, by_model = House("a", 1, 4, 32, 4.0, 0.5, 1.0), House("b", 50, 2, 8, 0.1, 1.0, 3.0)
    assert simulate(by_app, 500, 10.0, 4000).hourly == pytest.approx(2 / 4.0 * 3600, rel=0.05)
    full = simulate(by_model, 2000, 10.0, 4000)
    assert full.hourly == pytest.approx(16 / 3.0 * 3600, rel=0.06)
    assert full.busy > 0.95


def test_more_people_are_held_the_longer_they_wait_and_none_where_nobody_would() -> None:
    short, long = find_capacity(ALONE, 30.0, 10.0, 3000), find_capacity(ALONE, 30.0, 40.0, 3000)
    assert 1 <= short.people < long.people
    assert long.worst <= 40
    with pytest.raises(DataError, match="does not answer one person within 1 s"):
        find_capacity(ALONE, 30.0, 1.0, 3000)


def test_times_that_are_none_are_refused() -> None:
    told = CliRunner().invoke(app, ["scale", "--pause", "0"])
    assert isinstance(told.exception, DataError)
    assert "above 0" in str(told.exception)


class TestContainers:
    @pytest.fixture
    def compose(self) -> dict[str, dict[str, dict[str, object]]]:
        """What the Compose specification makes of compose.yaml; names that nobody defines are refused by it."""
        spec = pytest.importorskip("compose_spec", reason="needs the tests' requirements")
        read = spec.PyCompose.from_yaml((ROOT / "compose.yaml").read_text())
        for check in (read.validate, read.validate_networks, read.validate_secrets, read.validate_volumes):
            check()
        return dict(read.to_dict())

    def test_the_engines_are_there_watched_and_waited_for(
        self, compose: dict[str, dict[str, dict[str, object]]]
    ) -> None:
        services = compose["services"]
        assert set(services) == {"app", "vllm", "postgres", "opensearch"}
        assert all("healthcheck" in services[name] for name in ("vllm", "postgres", "opensearch"))
        assert set(services["app"]["depends_on"]) == {"vllm", "postgres", "opensearch"}  # type: ignore[call-overload]
        assert "ports" not in services["postgres"] | services["opensearch"]
        assert compose["networks"]["kept"]["internal"] is True

    def test_what_the_app_is_told_are_settings(self, monkeypatch: pytest.MonkeyPatch, compose: dict) -> None:
        told = {key: str(value) for key, value in compose["services"]["app"]["environment"].items()}
        told |= dict(re.findall(r"(SEQUITUR_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))
        for key, value in told.items():
            assert not re.search(r"\$\{\w+:-", value), f"{key} has a default where there must be none"
            monkeypatch.setenv(key, value)
        settings = Settings()
        assert (settings.llm.backend, settings.llm.slots, settings.log) == ("server", 32, "json")
        assert settings.retrieve.opensearch.address == "http://opensearch:9200"
        assert settings.database_url.startswith("postgresql+psycopg://")
        assert settings.web.grace_seconds < int(str(compose["services"]["app"]["stop_grace_period"]).rstrip("s"))

    def test_the_image_copies_what_is_there_and_is_sent_and_runs_as_nobody_in_particular(self) -> None:
        docker, sent = (ROOT / "Dockerfile").read_text(), (ROOT / ".dockerignore").read_text().splitlines()
        copied = [
            name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE) for name in line.split()
        ]
        assert copied
        assert all((ROOT / name).exists() and f"!{name}" in sent for name in copied)
        assert re.search(r"^USER (?!root)\w+$", docker, re.MULTILINE)
        assert "/healthz" in docker

    def test_the_image_leaves_out_only_what_neither_the_requirements_name_nor_the_code_imports(self) -> None:
        excluded = re.search(r"printf '%s\\n' (.+) > excluded\.txt", (ROOT / "Dockerfile").read_text())
        assert excluded
        needed = (ROOT / "requirements.txt").read_text().split("# What the tests and checks need")[0]
        needed += "".join((ROOT / f"requirements-{extra}.txt").read_text() for extra in ("opensearch", "postgres"))
        code = "".join(file.read_text() for room in ("assistant", "ptkb") for file in (ROOT / room).rglob("*.py"))
        named = {name.lower() for name in re.findall(r"^[\w.-]+", needed, re.MULTILINE)}
        imported = {
            name.lower().replace("_", "-") for name in re.findall(r"^ *(?:from|import) (\w+)", code, re.MULTILINE)
        }
        assert not set(excluded[1].split()) & (named | imported)
