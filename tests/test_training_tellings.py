"""The recipe of sentences that tell of the world: they are whole and different, list things, and none clashes."""

from assistant.training.suitability.tables import load_tables, read_table
from assistant.training.suitability.tellings import make_tellings

SEED = 0


def test_they_are_different_and_whole_and_the_same_for_a_seed():
    tables = load_tables("train", SEED)
    pairs = make_tellings(tables, 3000, SEED)
    assert len({(pair.fact, pair.text) for pair in pairs}) == 3000
    assert pairs == make_tellings(tables, 3000, SEED)
    assert pairs != make_tellings(tables, 3000, SEED + 1)
    for pair in pairs:
        assert pair.text[0].isupper() or pair.text[0].isdigit()
        assert pair.text.endswith(".")
        assert "{" not in pair.text
    assert not any(pair.clash for pair in pairs)


def test_every_subject_is_told_of_in_lists_and_alone():
    texts = [pair.text for pair in make_tellings(load_tables("train", SEED), 3000, SEED)]
    for subject in read_table("tellings").values():
        mine = [text for text in texts if any(of.lower() in text.lower() for of in subject["of"])]
        lists = [text for text in mine if any(f", {thing}" in text for thing in subject["things"])]
        assert lists
        assert len(lists) < len(mine)
