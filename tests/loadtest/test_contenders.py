from array import array

import pytest
from minutewheel.loadtest.contenders import CONTENDERS, Page, Task

pytestmark = pytest.mark.pure

NOON_MS = 1_790_856_000_000
MINUTE = NOON_MS // 60_000


def page_of(*tasks: tuple[int, int]) -> Page:
    dues, filings = [due for due, _ in tasks], [filing for _, filing in tasks]
    return Page(MINUTE, array("q", dues), array("q", filings), [b"%d" % filing for filing in filings])


@pytest.mark.parametrize("name", CONTENDERS)
def test_all_contenders_keep_the_same_contract(name: str) -> None:
    contender = CONTENDERS[name](NOON_MS - 30_000)
    try:
        contender.load(page_of((NOON_MS, 1), (NOON_MS, 2), (NOON_MS + 10, 3)))
        contender.load(page_of((NOON_MS + 10, 4), (NOON_MS + 20, 5)))
        contender.add(MINUTE, Task(NOON_MS + 10, 6, b"6"))
        assert contender.cancel(NOON_MS + 10, 4)
        assert not contender.cancel(NOON_MS + 10, 4)
        assert not contender.cancel(NOON_MS + 10, 7)
        fired = []
        for now_ms in range(NOON_MS - 10, NOON_MS + 40, 10):
            pieces = contender.fire(now_ms, 2_000)
            fired.append(
                [
                    (filing, record)
                    for filings, records in pieces
                    for filing, record in zip(filings, records, strict=True)
                ]
            )
        assert [sorted(turn) for turn in fired] == [
            [],
            [(1, b"1"), (2, b"2")],
            [(3, b"3"), (6, b"6")],
            [(5, b"5")],
            [],
        ]
        assert not contender.cancel(NOON_MS + 20, 5)
    finally:
        contender.close()


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name != "asyncio.call_at"])
def test_a_limit_leaves_the_rest_for_the_next_turn(name: str) -> None:
    contender = CONTENDERS[name](NOON_MS)
    contender.load(page_of(*((NOON_MS + n, n) for n in range(1, 8))))
    turns = [contender.fire(NOON_MS + 10, 3) for _ in range(4)]
    assert [[n for filings, _ in turn for n in filings] for turn in turns] == [[1, 2, 3], [4, 5, 6], [7], []]
