import pytest

from assistant.strategies.shared.pool import elect, vote
from assistant.types import Candidate
from tests.scripted import WordEmbedder


def pool(*texts: str) -> list[Candidate]:
    return [Candidate(text, f"p{n}", unknown=text == "unknown") for n, text in enumerate(texts)]


def decided(form: str, *texts: str) -> tuple[list[int], str]:
    voted = vote(pool(*texts), form, WordEmbedder())
    winner = elect(voted, form, WordEmbedder())
    return [candidate.votes for candidate in voted], winner.text if winner else "unknown"


def test_the_majority_of_normalised_strings_wins() -> None:
    assert decided("factoid", "Paris", "Lyon", "lyon.", "The Lyon") == ([1, 3, 3, 3], "Lyon")


def test_unknown_has_no_votes_unless_all_are() -> None:
    assert decided("factoid", "unknown", "unknown", "Paris") == ([0, 0, 1], "Paris")
    assert decided("factoid", "unknown", "unknown") == ([0, 0], "unknown")
    assert decided("chat", "unknown") == ([0], "unknown")


def test_an_answer_in_doubt_does_not_vote_for_one_that_says_the_same() -> None:
    candidates = [Candidate("Paris", "p1"), Candidate("Lyon", "p2"), Candidate("Lyon", "p3", unknown=True)]
    voted = vote(candidates, "factoid", WordEmbedder())
    assert [one.votes for one in voted] == [1, 1, 0]
    winner = elect(voted, "factoid", WordEmbedder())
    assert winner
    assert winner.text == "Paris"


def test_a_tie_goes_to_the_better_passage() -> None:
    assert decided("factoid", "unknown", "Lyon", "Paris", "Paris", "lyon")[1] == "Lyon"


def test_chat_answers_cluster_by_similarity_and_the_central_one_speaks() -> None:
    votes, winner = decided(
        "chat",
        "Walk for half an hour a day",
        "Eat lentils and beans every day",
        "Eat lentils and beans every single day",
        "Eat lentils and white beans every day",
    )
    assert votes == [1, 3, 3, 3]
    assert winner == "Eat lentils and beans every day"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The country has about 5.4 million inhabitants", "The country has about 5,379,000 inhabitants", True),
        ("The country has about 5.4 million inhabitants", "The country has about 9.4 million inhabitants", False),
        ("It has 3 official languages in all of it", "It has 4 official languages in all of it", False),
        ("It has official languages in all of it, 4", "It has official languages in all of it", True),
        ("The capital of that state is Lima by law", "The capital of that state is Cusco by law", False),
        ("The capital of that state is Lima by law", "The capital of that state is lima by law", True),
    ],
)
def test_chat_answers_that_differ_in_a_number_or_a_name_are_no_votes_for_each_other(
    one: str, other: str, same: bool
) -> None:
    assert decided("chat", one, other)[0] == ([2, 2] if same else [1, 1])


def test_no_cluster_joins_answers_that_disagree() -> None:
    votes, _ = decided(
        "chat",
        *["It has official languages in all of it"] * 3,
        *(f"It has {n} official languages in all of it" for n in (3, 4)),
    )
    assert sorted(votes) == [1, 4, 4, 4, 4]


def test_an_empty_pool_is_unknown() -> None:
    assert vote([], "chat", WordEmbedder()) == ()
    assert elect([], "chat", WordEmbedder()) is None
