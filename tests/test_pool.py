from assistant.pool import elect, vote
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


def test_an_empty_pool_is_unknown() -> None:
    assert vote([], "chat", WordEmbedder()) == ()
    assert elect([], "chat", WordEmbedder()) is None
