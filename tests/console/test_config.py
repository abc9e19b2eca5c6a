from typing import Any

from minutewheel.console import config
from minutewheel.settings import keys


def test_all_settings_and_their_origins(desk: Any) -> None:
    call, screen = desk.call()
    config.show(call, origin=True)
    (document,) = screen.documents
    assert list(document) == keys()
    assert document["data"] == {"value": str(desk.folder), "origin": "flag"}
    assert document["worker.threads"] == {"value": 32, "origin": "default"}


def test_as_text_each_line_can_be_given_to_set(desk: Any) -> None:
    desk.flags = {"queues": "a,b"}
    call, screen = desk.call(json=False)
    config.show(call)
    lines = dict(line.split(" = ") for line in screen.text().splitlines())
    assert (lines["queues"], lines["declare_queues"], lines["worker.threads"]) == ("a,b", "true", "32")
    call, screen = desk.call(json=False)
    config.show(call, origin=True)
    assert "queues = a,b   # flag" in screen.text().splitlines()
