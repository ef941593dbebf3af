"""What every LLM backend must do. A backend's test module subclasses `LLMContract` and gives the fixture `llm`."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event, Timer

import pytest

from assistant.errors import ModelError
from assistant.protocols import LLM
from assistant.types import Completion, Message, Messages, Options

# Within a second on a quiet machine; one that does other work beside the tests is slower, never as slow as the whole.
PROMPT_SECONDS = 5.0


def ask(text: str) -> Messages:
    return (Message("system", "You are a helpful assistant."), Message("user", text))


def run(llm: LLM, text: str, halt: Event | None = None, **options: object) -> list[Completion]:
    return list(llm.stream(ask(text), Options(**options), halt or Event()))  # type: ignore[arg-type]


QUESTIONS = [
    "What is the capital of France?",
    "Name a fruit.",
    "What is two plus two?",
    "Which animal barks?",
    "Say hi.",
]


class StopContract:
    """What is stopped or left ends soon, and nobody waits for another's batch."""

    def test_stop_keeps_what_was_written(self, llm: LLM) -> None:
        stop, last, since = Event(), Completion(""), 0.0
        for count, last in enumerate(llm.stream(ask("Tell me a long story."), Options(500), stop)):
            if count == 3:
                stop.set()
                seen, since = last.text, time.perf_counter()
        assert time.perf_counter() - since < PROMPT_SECONDS
        assert last.finish == "cancelled"
        assert last.text.startswith(seen)
        assert last.completion_tokens < 500

    def test_stop_is_heard_while_the_prompt_is_read(self, llm: LLM) -> None:
        stop = Event()
        Timer(0.2, stop.set).start()
        since = time.perf_counter()
        pieces = run(llm, "A story of a ship. " * 120, stop, max_tokens=300)
        assert pieces[-1].finish == "cancelled"
        assert time.perf_counter() - since < 0.2 + PROMPT_SECONDS

    def test_stop_ends_a_batch(self, llm: LLM) -> None:
        stop = Event()
        Timer(0.5, stop.set).start()
        since = time.perf_counter()
        completions = llm.complete([ask("Tell me a long story.")] * 6, Options(500), stop)
        assert time.perf_counter() - since < 0.5 + PROMPT_SECONDS
        assert [completion.finish for completion in completions] == ["cancelled"] * 6
        assert all(completion.completion_tokens < 500 for completion in completions)

    def test_stop_before_the_start_costs_nothing(self, llm: LLM) -> None:
        stop = Event()
        stop.set()
        assert [piece.finish for piece in run(llm, "Hi", stop)] == ["cancelled"]
        assert llm.complete([ask("Hi")], Options(), stop)[0].text == ""
        assert sum(llm.choose([ask("Hi")], ("yes", "no"), stop)[0].probabilities.values()) == pytest.approx(1)

    def test_a_stream_that_is_left_makes_room(self, llm: LLM) -> None:
        for _ in range(6):
            stream = llm.stream(ask("Tell me a long story."), Options(1500), Event())
            next(stream)
            stream.close()  # type: ignore[attr-defined]
        since = time.perf_counter()
        assert run(llm, "Say hi.", max_tokens=2)[-1].finish
        assert time.perf_counter() - since < 10

    def test_one_user_does_not_wait_for_anothers_batch(self, llm: LLM) -> None:
        ends: dict[str, float] = {}

        def batch() -> None:
            llm.complete([ask(f"Tell me story number {n}.") for n in range(12)], Options(40), Event())
            ends["batch"] = time.perf_counter()

        def single() -> None:
            time.sleep(0.5)
            run(llm, "Say hi.", max_tokens=4)
            ends["single"] = time.perf_counter()

        with ThreadPoolExecutor(2) as pool:
            for call in (pool.submit(batch), pool.submit(single)):
                call.result()
        assert ends["single"] < ends["batch"]


class NumberContract:
    """What the weights decide: texts, probabilities and likelihoods, one prompt at a time or many.

    `ROUNDING` is how far apart two probabilities of the same word may be.
    """

    ROUNDING = 0.01

    def test_streaming_equals_completion(self, llm: LLM) -> None:
        streamed = run(llm, "Why is the sky blue?", max_tokens=24)[-1]
        (completed,) = llm.complete([ask("Why is the sky blue?")], Options(24), Event())
        assert streamed.text == completed.text
        assert streamed.completion_tokens == completed.completion_tokens

    def test_every_token_has_a_log_probability(self, llm: LLM) -> None:
        last = run(llm, "Tell me a long story about a ship.", max_tokens=12)[-1]
        assert len(last.logprobs) == 12
        assert all(math.isfinite(value) and value <= 1e-6 for value in last.logprobs)

    def test_a_batch_keeps_its_order(self, llm: LLM) -> None:
        """Tolerance: batching changes sums in the last bits, so a first token's log-probability may move by 0.1."""
        prompts = [ask(question) for question in QUESTIONS]
        together = llm.complete(prompts, Options(8), Event())
        alone = [llm.complete([prompt], Options(8), Event())[0] for prompt in prompts]
        assert [c.prompt_tokens for c in together] == [c.prompt_tokens for c in alone]
        for one, other in zip(together, alone, strict=True):
            assert one.logprobs[0] == pytest.approx(other.logprobs[0], abs=0.1)
        same = sum(one.text == other.text for one, other in zip(together, alone, strict=True))
        assert same >= len(prompts) - 1
        assert llm.complete([], Options(), Event()) == []

    def test_the_seed_decides(self, llm: LLM) -> None:
        def tell(seed: int) -> str:
            return run(llm, "Tell me a story.", max_tokens=16, temperature=1.0, seed=seed)[-1].text

        tell(1)  # so that all that follow find the same cache
        one = tell(1)
        assert tell(1) == one
        assert len({one, tell(2), tell(3)}) == 3

    def test_choices_sum_to_one_and_follow_the_prompt(self, llm: LLM) -> None:
        prompts = [ask(f"Answer with one word only. Repeat after me: {word}.") for word in ("yes", "no")]
        for_yes, for_no = llm.choose(prompts, ("yes", "no"), Event())
        assert sum(for_yes.probabilities.values()) == pytest.approx(1)
        assert for_yes.probabilities["yes"] > for_no.probabilities["yes"] + 0.1
        assert for_yes.prompt_tokens == llm.count(prompts[0])
        assert llm.choose([], ("yes", "no"), Event()) == []

    def test_a_choice_does_not_depend_on_the_order_of_words(self, llm: LLM) -> None:
        prompt = [ask("Is Paris in France? Answer true or false.")]
        (one,), (other,) = (
            llm.choose(prompt, ("true", "false"), Event()),
            llm.choose(prompt, ("false", "true"), Event()),
        )
        assert one.probabilities["true"] == pytest.approx(other.probabilities["true"], abs=self.ROUNDING)

    def test_a_given_text_has_a_likelihood_or_the_engine_says_that_it_can_not_tell(self, llm: LLM) -> None:
        texts = [
            (ask("What is the capital of France?"), text) for text in ("The capital of France is Paris.", "Zebra.")
        ]
        if not llm.can_score:
            with pytest.raises(ModelError, match="can't tell how likely"):
                llm.score(texts, Event())
            return
        likely, unlikely = llm.score(texts, Event())
        assert unlikely < likely < 0
        assert llm.score([], Event()) == []
        stop = Event()
        stop.set()
        assert llm.score(texts, stop) == [-math.inf] * 2


class LLMContract(StopContract, NumberContract):
    """The contract. Tolerances are those of `assistant.protocols.LLM`'s users: see each test."""

    def test_a_stream_grows_and_ends_once(self, llm: LLM) -> None:
        pieces = run(llm, "Why is the sky blue?", max_tokens=24)
        assert len(pieces) > 5
        assert all(later.text.startswith(earlier.text) for earlier, later in pairwise(pieces))
        assert [piece.finish for piece in pieces[:-1]] == [""] * (len(pieces) - 1)
        assert pieces[-1].finish in ("stop", "length")

    def test_what_is_read_is_told_before_there_is_any_text(self, llm: LLM) -> None:
        """An engine may tell it or not."""
        pieces = run(llm, "A story of a ship. " * 40, max_tokens=4)
        reading = [piece for piece in pieces if piece.read]
        assert pieces[: len(reading)] == reading
        assert all(piece.read <= piece.prompt_tokens == pieces[-1].prompt_tokens for piece in reading)
        assert not any(piece.text or piece.completion_tokens or piece.finish for piece in reading)

    def test_tokens_are_counted(self, llm: LLM) -> None:
        last = run(llm, "Tell me a long story about a ship.", max_tokens=12)[-1]
        assert last.prompt_tokens == llm.count(ask("Tell me a long story about a ship."))
        assert (last.finish, last.completion_tokens) == ("length", 12)
        assert llm.count(ask("one two three four")) > llm.count(ask("one"))

    def test_what_is_thought_is_no_part_of_a_reply(self, llm: LLM) -> None:
        """What the model goes on with is what it has said before, thought included."""
        asked = Message("user", "Say it again.")
        said: Messages = (*(asked, Message("assistant", "Which one? That one.</think>Oats.")) * 3, asked)
        [whole] = llm.complete([said], Options(24), Event())
        *_, last = llm.stream(said, Options(24), Event())
        assert whole.text == last.text == "Oats."

    def test_a_stop_string_ends_the_text_and_is_never_shown(self, llm: LLM) -> None:
        whole = run(llm, "Tell me a long story about a ship.", max_tokens=24)[-1].text
        stop_at = whole[len(whole) // 2 : len(whole) // 2 + 5]
        pieces = run(llm, "Tell me a long story about a ship.", max_tokens=24, stop=(stop_at,))
        assert pieces[-1].finish == "stop"
        assert pieces[-1].text == whole[: whole.index(stop_at)]
        assert all(stop_at not in piece.text for piece in pieces)

    def test_the_end_of_the_reply_is_no_part_of_it(self, llm: LLM) -> None:
        last = run(llm, "Answer with one word: what is the capital of France?", max_tokens=200)[-1]
        assert last.finish == "stop"
        assert "<|" not in last.text

    def test_characters_are_never_broken(self, llm: LLM) -> None:
        pieces = run(llm, "Repeat this line exactly: 😀🦄👩‍🚀 日本語 čeština 🏳️‍🌈 Ελλάδα", max_tokens=40)
        assert any(ord(character) > 0x2000 for character in pieces[-1].text), "the model wrote nothing to test with"
        assert all("\ufffd" not in piece.text for piece in pieces)

    @pytest.mark.parametrize("text", ["", "a\0b", "lone \ud800 surrogate", "\u202eright to left\u202c", "🏳️‍🌈" * 50])
    def test_odd_text_is_read(self, llm: LLM, text: str) -> None:
        assert run(llm, text, max_tokens=3)[-1].prompt_tokens > 0

    def test_text_can_not_speak_for_the_template(self, llm: LLM) -> None:
        plain = llm.count(ask("ab"))
        assert llm.count(ask("a<|im_end|>b")) >= plain + 4

    def test_words_of_several_tokens_can_be_chosen(self, llm: LLM) -> None:
        (choice,) = llm.choose([ask("Hi")], ("unsupported by it", "contradicted", "neutral"), Event())
        assert sum(choice.probabilities.values()) == pytest.approx(1)

    def test_words_that_begin_alike_are_refused(self, llm: LLM) -> None:
        with pytest.raises(ModelError, match="begins like"):
            llm.choose([ask("Hi")], ("not supported", "not known"), Event())

    def test_a_prompt_that_is_too_long_is_refused_with_its_length(self, llm: LLM) -> None:
        long = ask("word " * (llm.context + 10))
        message = rf"{llm.count(long)} tokens.*{llm.context}"
        with pytest.raises(ModelError, match=message):
            list(llm.stream(long, Options(), Event()))
        with pytest.raises(ModelError, match=message):
            llm.complete([ask("Hi"), long], Options(), Event())
        with pytest.raises(ModelError, match=message):
            llm.choose([long], ("yes", "no"), Event())

    def test_the_context_ends_the_text(self, llm: LLM) -> None:
        words = llm.context - llm.count(ask("")) - 8
        last = run(llm, "word " * words, max_tokens=100)[-1]
        assert last.finish == "length" or last.completion_tokens < 12
        assert last.prompt_tokens + last.completion_tokens <= llm.context + 1
