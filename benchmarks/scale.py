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

from assistant.commands.experiment import show
from assistant.errors import DataError
from assistant.experiment.options import AsJson

TURNS = 20_000  # answered in a simulation, after as many of which a quarter were not counted
MOST = 1_000_000  # people


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

    def app_rate(self, there: int) -> float:
        """Turns that the app processes are done with a second, where so many are there."""
        return min(there, 2 * self.apps) / self.app_seconds if self.app_seconds else float(there and 1e6)

    def model_rate(self, there: int) -> float:
        """Turns that the models are done with a second, where so many are there, spread evenly over the servers."""
        total = self.models * self.seats
        taken = min(there, total)
        share = (taken - 1) / (total - 1) if total > 1 and taken else 0.0
        return taken / (self.model_seconds * (1 + share * (self.slowing - 1)))


@dataclass(frozen=True, slots=True)
class Held:
    """What people get of a house: seconds from question to answer (median, 95th percentile), and turns an hour.

    `busy` is the share of the models' seats that were taken.
    """

    people: int
    median: float
    worst: float
    hourly: float
    busy: float


def simulate(house: House, people: int, pause: float, turns: int = TURNS, seed: int = 0) -> Held:
    """Let so many people ask, each again after a mean `pause` in seconds, until so many turns are answered."""
    chance, now, took = random.Random(seed), 0.0, list[float]()  # noqa: S311 - a simulation
    apps, models, done = deque[float](), list[float](), 0  # when each turn that is there was asked
    counted, taken, total = 0.0, 0.0, house.models * house.seats
    while done < turns:
        thinking = people - len(apps) - len(models)
        rates = (thinking / pause, house.app_rate(len(apps)), house.model_rate(len(models)))
        passed = chance.expovariate(sum(rates))
        now += passed
        if done >= turns // 4:
            counted, taken = counted + passed, taken + passed * min(len(models), total)
        [what] = chance.choices(range(3), rates)
        if what == 0:
            apps.append(now)
        elif what == 1:
            # any of those that are worked on may be done first
            models.append(_taken(apps, chance.randrange(min(len(apps), 2 * house.apps))))
        else:
            begun, done = models.pop(chance.randrange(min(len(models), total))), done + 1
            if done > turns // 4:
                took.append(now - begun)
    cuts = quantiles(took, n=20)
    return Held(people, cuts[9], cuts[18], len(took) / counted * 3600, taken / counted / total)


def _taken(line: deque[float], place: int) -> float:
    one = line[place]
    del line[place]
    return one


def holds(house: House, pause: float, aim: float, turns: int = TURNS) -> Held:
    """The most people, to about a twentieth, of whose answers 19 of 20 come within `aim` seconds.

    Raises:
        DataError: not even one person's do.
    """
    best = simulate(house, 1, pause, turns)
    if best.worst > aim:
        raise DataError(f"'{house.name}' does not answer one person within {aim:g} s; take a longer --aim.")
    least, most = 1, 2
    while most < MOST and (held := simulate(house, most, pause, turns)).worst <= aim:
        best, least, most = held, most, 2 * most
    while most - least > max(1, least // 20):
        middle = (least + most) // 2
        held = simulate(house, middle, pause, turns)
        if held.worst <= aim:
            best, least = held, middle
        else:
            most = middle
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
    found = {one.name: asdict(holds(one, pause, aim)) for one in houses(turn, share, gpu, seats, slowing)}
    show({"houses": found}, as_json)
