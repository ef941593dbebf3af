"""llama.cpp inside this process: the contract of every LLM."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from llm_contract import LLMContract

from assistant.llm import backends
from assistant.protocols import LLM, silent
from assistant.settings import LLMSettings, Settings

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def loaded(smollm_path: Path) -> Iterator[LLM]:
    settings = Settings(llm=LLMSettings(backend="inside", context=1024))
    llm = backends.named("inside").load(smollm_path, "smollm2-135m", settings, silent)
    yield llm
    llm.close()


class TestContract(LLMContract):
    @pytest.fixture
    def llm(self, loaded: LLM) -> LLM:
        return loaded
