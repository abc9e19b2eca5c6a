import re

import pytest
from minutewheel.loadtest.page import style

pytestmark = pytest.mark.pure


def test_dark_has_each_colour_of_light_and_each_that_is_used_is_there() -> None:
    light, dark = (set(re.findall(r"(--[\w-]+):", text)) for text in (style.LIGHT, style.DARK))
    assert light == dark
    assert set(re.findall(r"var\((--[\w-]+)\)", style.STYLE)) == light


def test_the_style_asks_for_nothing() -> None:
    assert not re.search(r"url\(|@import|@font-face|https?:", style.STYLE)
