import re
from html.parser import HTMLParser

import msgspec
import pytest
from minutewheel.loadtest.page import page_of
from minutewheel.loadtest.report import Counts, Lateness, Report

pytestmark = pytest.mark.pure

SIZE_MAX = 1_500_000


class Elements(HTMLParser):
    """Are they closed in the order in which they were opened, and what are their names?"""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in {"meta", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_what_is_in_a_report_is_text_and_nothing_else(full_report: Report) -> None:
    page = page_of(full_report)
    elements = Elements(page)
    assert elements.open == []
    assert {"script", "img", "iframe", "a"} & set(elements.names) == set()
    assert [name for name in elements.attributes if name.startswith("on")] == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x07&#x27;&quot;&amp;" in page
    assert "\u202e" not in page
    assert "\x07" not in page


def test_each_count_is_on_the_page(full_report: Report) -> None:
    names = Counts.__struct_fields__
    counts = Counts(**{name: 1_111 * (place + 1) for place, name in enumerate(names)})
    page = page_of(msgspec.structs.replace(full_report, counts=counts))
    shown = dict(re.findall(r'<dt>(\w+)</dt><dd class="value"><span[^>]*>(?:<svg.*?</svg>)?([\d,]+)</span>', page))
    assert shown == {name: f"{getattr(counts, name):,}" for name in names}


def test_a_run_that_lost_tasks_looks_so(full_report: Report) -> None:
    page = page_of(msgspec.structs.replace(full_report, counts=Counts(fired=9, lost=3), complete=False))
    assert '<div class="verdict bad" role="status">' in page
    assert "<strong>3 tasks lost.</strong><p>Incomplete: " in page
    assert '<div class="verdict good" role="status">' in page_of(full_report)


def test_all_parts_are_there_and_what_is_missing_is_said(full_report: Report) -> None:
    page = page_of(full_report)
    titles = ["Counts", "Figures", "Remarks", "Faults", "Lateness and speed", "Load", "Ownership", "Processes"]
    assert re.findall("<h2>(.*?)</h2>", page) == [*titles, "Environment"]
    assert "Not in this report" not in page
    changes = {"lateness": Lateness(), "series": (), "heat": None, "bands": (), "tenures": (), "processes": ()}
    bare = page_of(msgspec.structs.replace(full_report, **changes, core_s_per_million=None, duration_ms=0))
    assert (
        "Not in this report: percentiles of lateness, series over time, tasks by minute and shard, owners of shards, "
        "processes and cost." in bare
    )


def test_a_day_s_page_is_bounded(day_report: Report) -> None:
    page = page_of(day_report)
    assert len(page.encode()) < SIZE_MAX
    assert "86,400 steps of 1 s are drawn in columns of 2 min 53 s" in page
    assert "Thinned to columns of which the least and the largest value are drawn" in page


def test_the_page_forbids_itself_to_ask_for_anything(full_report: Report) -> None:
    page = page_of(full_report)
    assert 'content="default-src &#x27;none&#x27;; style-src &#x27;unsafe-inline&#x27;; img-src data:"' in page
    assert not re.search(r"(src|href)=\"(?!data:,)", page)
