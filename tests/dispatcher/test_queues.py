"""Which queues a submission may name."""

import pytest
from minutewheel.dispatcher.queues import Queues

pytestmark = pytest.mark.pure


def test_only_declared_queues_are_admitted() -> None:
    queues = Queues()
    assert not queues.admits("mail")
    assert not queues.met
    queues.learn(["mail", "push"], [])
    assert queues.admits("mail")
    assert not queues.admits("mall")
    assert not queues.met


def test_an_installation_for_development_admits_all_and_notes_what_is_to_be_declared() -> None:
    queues = Queues(declares=True)
    queues.learn(["mail"], [])
    assert queues.admits("mail")
    assert queues.admits("push")
    assert queues.admits("sms")
    assert queues.met == {"push", "sms"}
    queues.learn(["mail", "push"], [])
    assert queues.met == {"sms"}
    assert queues.admits("push")
    assert queues.met == {"sms"}


def test_the_silent_ones_are_those_of_the_last_look() -> None:
    queues = Queues()
    queues.learn(["mail", "metrics"], ["metrics"])
    assert queues.silent == {"metrics"}
    queues.learn(["mail", "metrics"], [])
    assert queues.silent == frozenset()
    assert queues.admits("metrics")
