"""Where each value comes from, and how mistakes are told."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.settings import Section, Settings, SettingsError, keys, leaves, load, shown
from pydantic import SecretStr

pytestmark = pytest.mark.pure


def refusal(**flags: object) -> str:
    with pytest.raises(SettingsError) as refused:
        load({key.replace("__", "."): value for key, value in flags.items()})
    return str(refused.value)


def test_flags_outrank_the_environment_which_outranks_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("minutewheel.toml").write_text(
        "[dispatcher]\nlead_ms = 1000\nread_ahead = 9000\nbatch_max = 7\n[worker]\nthreads = 3\n"
    )
    monkeypatch.setenv("MINUTEWHEEL_DISPATCHER__LEAD_MS", "2000")
    monkeypatch.setenv("MINUTEWHEEL_DISPATCHER__READ_AHEAD", "9001")
    loaded = load({"dispatcher.lead_ms": "3000"})
    assert loaded.settings.dispatcher.lead_ms == 3000
    assert loaded.settings.dispatcher.read_ahead == 9001
    assert loaded.settings.dispatcher.batch_max == 7
    assert loaded.settings.worker.threads == 3
    origins = {key: origin for key, origin in loaded.origins.items() if origin != "default"}
    assert origins == {
        "dispatcher.lead_ms": "flag",
        "dispatcher.read_ahead": "environment",
        "dispatcher.batch_max": "minutewheel.toml",
        "worker.threads": "minutewheel.toml",
    }


def test_the_file_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("one.toml").write_text('data = "one"')
    Path("two.toml").write_text('data = "two"\nqueues = ["a", "b"]')
    monkeypatch.setenv("MINUTEWHEEL_CONFIG", "one.toml")
    assert load().settings.data == Path("one")
    named = load(file=Path("two.toml"))
    assert (named.settings.data, named.settings.queues) == (Path("two"), ("a", "b"))
    with pytest.raises(SettingsError, match=r"no settings file gone\.toml"):
        load(file=Path("gone.toml"))


@pytest.mark.parametrize("content", [b"a = ", b'"\xff" = 1', b"= 1\n"])
def test_a_file_that_is_no_toml_is_told_in_a_line(content: bytes) -> None:
    Path("minutewheel.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"^minutewheel\.toml: .*$"):
        load()


def test_a_misspelt_key_names_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean dispatcher.lead_ms?" in refusal(dispatcher__leed_ms=1)
    Path("minutewheel.toml").write_text("[worker]\nconcurency = 1\n")
    assert "did you mean worker.concurrency?" in refusal()
    Path("minutewheel.toml").unlink()
    monkeypatch.setenv("MINUTEWHEEL_DISPACHER__LEAD_MS", "1")
    assert "did you mean MINUTEWHEEL_DISPATCHER__LEAD_MS?" in refusal()


def test_every_mistake_is_told_at_once() -> None:
    lines = refusal(worker__threads="x", dispatcher__lead_ms=0, log__level="loud").splitlines()
    assert [line.partition(" ")[0] for line in sorted(lines)] == ["dispatcher.lead_ms", "log.level", "worker.threads"]


def test_a_section_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(dispatcher=3) == "dispatcher (flag) is a section, not a value"


def test_what_kubernetes_puts_into_the_environment_is_not_meant_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "MINUTEWHEEL_SERVICE_HOST": "10.0.0.1",
        "MINUTEWHEEL_SERVICE_PORT_HTTP": "80",
        "MINUTEWHEEL_API_SERVICE_HOST": "10.0.0.1",
        "MINUTEWHEEL_PORT_80_TCP_ADDR": "10.0.0.1",
        "MINUTEWHEEL_PORT": "tcp://10.0.0.1:80",
    }.items():
        monkeypatch.setenv(name, value)
    assert set(load().origins.values()) == {"default"}


@given(st.sampled_from(keys()), st.text(max_size=8).map(lambda text: f"hunter2{text}"))
def test_a_value_is_never_repeated_in_a_message(key: str, value: str) -> None:
    said = ""
    try:
        load({key: value})
    except SettingsError as refused:
        said = str(refused)
    assert "hunter2" not in said


def test_the_value_of_an_unknown_variable_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINUTEWHEEL_KAFKA__PASSWORD", "hunter2")
    assert "hunter2" not in refusal()


def test_secrets_are_shown_as_stars() -> None:
    class Inner(Section):
        password: SecretStr

    class Outer(Section):
        inner: Inner
        name: str

    tree = Outer(inner=Inner(password=SecretStr("hunter2")), name="x")
    assert shown(tree) == {"inner.password": "**********", "name": "x"}
    assert "hunter2" not in repr(tree)


def test_what_is_shown_can_be_given_again() -> None:
    values: dict[str, Any] = shown(load({"queues": "a,b", "declare_queues": "no"}).settings)
    assert list(values) == keys()
    assert shown(load(values).settings) == values


def test_every_setting_is_explained_and_has_a_default() -> None:
    for key, field in leaves():
        assert field.description, key
        assert not field.is_required(), key
    assert Settings() == load().settings
