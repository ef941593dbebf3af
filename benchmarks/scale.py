"""Simulates how many people a setup can serve: queues with service times that were measured.

A turn is first searched for and judged by an app process, then read and written by a model. An app process works on two
turns at once; a model server on as many as it has seats, each the slower the more of them are taken; whoever finds none
free waits, first come first served. People ask again some time after their answer has come (a closed loop), so that a
slow house is asked less. All times are exponential around their mean, which makes the whole a Markov chain; it is
simulated event by event (Gillespie, J. Comput. Phys. 1976). The network, and machines that fail, are left out.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Annotated

import typer

from assistant.commands.experiment import print_summary
from assistant.errors import DataError
from assistant.experiment.options import AsJson

TURNS = 20_000  # answered in a simulation, after as many of which a quarter were not counted
MAX_PEOPLE = 1_000_000


@dataclass(frozen=True, slots=True)
class House:
    """What answers: app processes and model servers, and the mean seconds that each part of a turn takes alone.

    `seats` are the turns that one model server works on at once; where all are taken each takes `slowing` times as
    long as alone, and in proportion where fewer are.
    """

    name: str
    apps: int
    models: int
    seats: int
    app_seconds: float
    model_seconds: float
    slowing: float

    def app_rate(self, turns: int) -> float:
        """Turns that the app processes are done with a second, where so many are there."""
        return min(turns, 2 * self.apps) / self.app_seconds if self.app_seconds else float(turns and 1e6)

    def model_rate(self, turns: int) -> float:
        """Turns that the models are done with a second, where so many are there, spread evenly over the servers."""
        total_seats = self.models * self.seats
        taken_seats = min(turns, total_seats)
        share = (taken_seats - 1) / (total_seats - 1) if total_seats > 1 and taken_seats else 0.0
        return taken_seats / (self.model_seconds * (1 + share * (self.slowing - 1)))


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """What people get of a house: seconds from question to answer (median, 95th percentile), and turns an hour.

    `busy` is the share of the models' seats that were taken.
    """

    people: int
    median: float
    worst: float
    hourly: float
    busy: float


def simulate(house: House, people: int, pause: float, turns: int = TURNS, seed: int = 0) -> ServiceLevel:
    """Let so many people ask, each again after a mean `pause` in seconds, until so many turns are answered."""
    rng, now, waits = random.Random(seed), 0.0, list[float]()  # noqa: S311 - a simulation
    apps, models, done_count = deque[float](), list[float](), 0  # when each turn that is there was asked
    counted_seconds, seat_seconds, seats = 0.0, 0.0, house.models * house.seats
    while done_count < turns:
        thinking = people - len(apps) - len(models)
        rates = (thinking / pause, house.app_rate(len(apps)), house.model_rate(len(models)))
        elapsed = rng.expovariate(sum(rates))
        now += elapsed
        if done_count >= turns // 4:
            counted_seconds, seat_seconds = counted_seconds + elapsed, seat_seconds + elapsed * min(len(models), seats)
        [event] = rng.choices(range(3), rates)
        if event == 0:
            apps.append(now)
        elif event == 1:
            # any of those that are worked on may be done first
            models.append(_pop(apps, rng.randrange(min(len(apps), 2 * house.apps))))
        else:
            asked_at, done_count = models.pop(rng.randrange(min(len(models), seats))), done_count + 1
            if done_count > turns // 4:
                waits.append(now - asked_at)
    cuts = quantiles(waits, n=20)
    return ServiceLevel(
        people, cuts[9], cuts[18], len(waits) / counted_seconds * 3600, seat_seconds / counted_seconds / seats
    )


def _pop(queue: deque[float], position: int) -> float:
    asked_at = queue[position]
    del queue[position]
    return asked_at


def find_capacity(house: House, pause: float, aim: float, turns: int = TURNS) -> ServiceLevel:
    """The most people, to about a twentieth, of whose answers 19 of 20 come within `aim` seconds.

    Raises:
        DataError: not even one person's do.
    """
    best = simulate(house, 1, pause, turns)
    if best.worst > aim:
        raise DataError(f"'{house.name}' does not answer one person within {aim:g} s; take a longer --aim.")
    lower, upper = 1, 2
    while upper < MAX_PEOPLE and (outcome := simulate(house, upper, pause, turns)).worst <= aim:
        best, lower, upper = outcome, upper, 2 * upper
    while upper - lower > max(1, lower // 20):
        middle = (lower + upper) // 2
        outcome = simulate(house, middle, pause, turns)
        if outcome.worst <= aim:
            best, lower = outcome, middle
        else:
            upper = middle
    return best


def houses(turn: float, share: float, gpu: float, seats: int, slowing: float) -> list[House]:
    """Four houses, each for about ten times as many people as the one before; times are of one turn alone.

    Args:
        turn: seconds of a whole turn on two cores.
        share: of these inside the language model.
        gpu: seconds that a GPU's server needs for what the model does in a turn.
        seats: turns that such a server works on at once.
        slowing: how many times as long one of them takes when all seats are taken.
    """
    app = turn * (1 - share)
    return [
        # app and model share the cores: four turns at once take four times as long each
        House("one machine with two cores", 1, 1, 4, 0.0, turn, 4.0),
        House("1 app process of two cores, 1 GPU", 1, 1, seats, app, gpu, slowing),
        House("10 app processes, 2 GPUs", 10, 2, seats, app, gpu, slowing),
        House("100 app processes, 16 GPUs", 100, 16, seats, app, gpu, slowing),
    ]


def scale(  # noqa: PLR0913 - what is assumed
    *,
    turn: Annotated[float, typer.Option(help="Seconds of a turn on two cores: docs/results/turn.md.")] = 6.0,
    share: Annotated[float, typer.Option(help="Share of it inside the language model: the same.")] = 0.64,
    gpu: Annotated[float, typer.Option(help="Seconds of that on a GPU's server, alone: an assumption.")] = 1.5,
    seats: Annotated[int, typer.Option(min=1, help="Turns side by side on a GPU: an assumption.")] = 32,
    slowing: Annotated[float, typer.Option(help="Times as slow each is when all are taken: an assumption.")] = 3.0,
    pause: Annotated[
        float, typer.Option(help="Mean seconds from an answer to the next question: an assumption.")
    ] = 60.0,
    aim: Annotated[float, typer.Option(help="Seconds within which 19 of 20 answers have to come.")] = 25.0,
    as_json: AsJson = False,
) -> None:
    """Simulate how many people at once four set-ups hold, from one machine to sixteen GPUs (docs/scale.md)."""
    if min(turn, gpu, pause, aim) <= 0 or not 0 <= share < 1 or slowing < 1:
        raise DataError("Times have to be above 0, --share from 0 to below 1, and --slowing 1 or more.")
    outcomes = {
        house.name: asdict(find_capacity(house, pause, aim)) for house in houses(turn, share, gpu, seats, slowing)
    }
    print_summary({"houses": outcomes}, as_json)
