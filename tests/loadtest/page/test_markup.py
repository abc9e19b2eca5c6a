import pytest
from minutewheel.loadtest.page.markup import Html, escaped, folded, joined, table, tag

pytestmark = pytest.mark.pure


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<b>&\"'", title='"><script>') == (
        '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&quot;&#x27;</p>'
    )


@pytest.mark.parametrize(
    ("text", "seen"), [("a\x07b", "a\\x07b"), ("a\u202eb", "a\\u202eb"), ("\ud800", "\\ud800"), ("é 漢 🦀", "é 漢 🦀")]
)
def test_what_acts_and_is_not_seen_is_spelt_out(text: str, seen: str) -> None:
    assert escaped(text) == seen


def test_what_is_html_already_stays_and_nothing_is_left_out_where_it_is_none() -> None:
    assert joined([Html("<i>"), None, "<"], ", ") == "<i>, &lt;"
    assert tag("a", None, class_="x", aria_label=None, http_equiv="y") == '<a class="x" http-equiv="y"></a>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_a_table_names_its_columns_and_rows() -> None:
    told = table(("what", "value"), [("<a>", "1")])
    assert '<th scope="col">value</th>' in told
    assert '<th scope="row">&lt;a&gt;</th><td>1</td>' in told
    assert folded("more", told) == f"<details><summary>more</summary>{told}</details>"
