from pathlib import Path

import pytest

from assistant.commands.option_groups import ModelOptions
from assistant.errors import SettingsError
from assistant.settings import Settings, load


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQUITUR_DATA_DIR")


def written(folder: Path, text: str) -> Path:
    file = folder / "sequitur.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_what_is_said_outright_wins_over_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, 'data_dir = "/from-file"\nlibrary = "file"\n[retrieve]\ntop_k = 3\nfusion_depth = 7\n')
    monkeypatch.setenv("SEQUITUR_DATA_DIR", "/from-environment")
    monkeypatch.setenv("SEQUITUR_RETRIEVE__TOP_K", "5")
    found = load(file)
    assert (found.data_dir, found.library) == (Path("/from-environment"), "file")
    assert (found.retrieve.top_k, found.retrieve.fusion_depth) == (5, 7)
    assert load(file, data_dir=tmp_path).data_dir == tmp_path
    assert Settings(data_dir=tmp_path).data_dir == tmp_path


def test_the_command_line_says_single_settings_of_a_section_and_leaves_the_others(tmp_path: Path) -> None:
    file = written(tmp_path, 'library = "file"\n[llm]\nmodel = "kept"\ncontext = 8192\n[web]\nport = 9\nhost = "::1"\n')
    said = ModelOptions(file, tmp_path, model="fast").load_settings(web={"host": None, "port": 0}, library=None)
    assert (said.llm.model, said.llm.context, said.library, said.data_dir) == ("fast", 8192, "file", tmp_path)
    assert (said.web.host, said.web.port) == ("::1", 0)
    assert ModelOptions(file).load_settings(retrieve={"retriever": "bm25"}).llm.model == "kept"
    assert said.changed(turn={"early_stop": False}, web={"port": 5}).web.host == "::1"


@pytest.mark.parametrize(
    "text",
    [
        "colour = 1",
        "[retrieve]\nkk = 1",
        "[llm]\ncontext = 5",
        "[retrieve]\ntop_k = 'many'",
        "[retrieve.top_k_by_loop]\nitrg_refine = 0",
        "[retrieve.top_k_by_loop]\nkk = 3",
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        SettingsError,
        match=r"colour|retrieve\.kk|llm\.context|retrieve\.top_k|retrieve\.top_k_by_loop\.(kk|itrg_refine)",
    ):
        load(written(tmp_path, text))


def test_a_context_without_room_for_prompt_and_reply_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"replies of 5000 tokens take an llm\.context of 10000, not 4096"):
        load(written(tmp_path, "[turn]\nmax_answer_tokens = 5000"))
    with pytest.raises(SettingsError, match=r"take an llm\.context of 1024, not 600"):
        load(written(tmp_path, "[llm]\ncontext = 600"))
    assert load(written(tmp_path, "[llm]\ncontext = 1024")).llm.context == 1024


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_number_without_end_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError, match=r"retrieve\.k1"):
        load(written(tmp_path, f"[retrieve]\nk1 = {value}"))


def test_a_quantisation_that_there_is_not_is_told_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_LLM__QUANTISATION", "foo")
    with pytest.raises(SettingsError, match=r"'llm\.quantisation' is not valid: .*'auto', 'none', 'int8' or 'nf4'"):
        load()


def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_LIBARY", "x")
    with pytest.raises(SettingsError, match="SEQUITUR_LIBARY"):
        load()


def test_a_variable_that_stands_for_a_whole_section_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_LLM", "fast")
    with pytest.raises(SettingsError, match="a variable of its own, such as SEQUITUR_LLM__MODEL=fast"):
        load()


def test_a_list_that_a_variable_gives_as_a_word_is_told_to_be_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_WEB__ADMINS", "ann")
    with pytest.raises(SettingsError, match=r"as JSON, such as SEQUITUR_WEB__ADMINS='\[\"ann\"\]'"):
        load()
    monkeypatch.setenv("SEQUITUR_WEB__ADMINS", '["ann"]')
    assert load().web.admins == ("ann",)


def test_a_data_folder_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"'data_dir' is not valid: .*it is empty; name a folder"):
        load(written(tmp_path, 'data_dir = ""'))
    monkeypatch.setenv("SEQUITUR_DATA_DIR", "")
    with pytest.raises(SettingsError, match="'data_dir' is not valid"):
        load()


def test_the_data_folder_may_be_at_home(tmp_path: Path) -> None:
    assert load(written(tmp_path, 'data_dir = "~/data"\n')).data_dir == Path.home() / "data"


def test_a_file_that_is_no_toml_or_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"sequitur\.toml"):
        load(written(tmp_path, "= ="))
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        load(tmp_path / "gone.toml")
