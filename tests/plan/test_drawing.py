"""Drawings of plans: the automaton's states and arrows, what they say, and text that is no syntax."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import gpu_cep as cep

EVENTS = pa.table({"ts": [1], "type": ["A"], "x": [1.0], "s": ["t"]})


def drawn(pattern):
    return cep.explain(EVENTS, f"PATTERN {pattern}").mermaid()


def arrows(drawing):
    """(from, what is bound, to) of each arrow, states by what they say."""
    states = dict(re.findall(r'^ +(b\ds\d+)\(+"(.*)"\)+$', drawing, re.MULTILINE))
    found = re.findall(r'^ +(b\ds\d+) -->\|"(.*)"\| (b\ds\d+)$', drawing, re.MULTILINE)
    return [(states[source], label, states[target]) for source, label, target in found]


def test_a_set_is_bound_in_any_order_and_repeats_while_nothing_follows():
    """A SES automaton (thesis Def. 4.1)."""
    assert arrows(drawn("SEQ(AND(A c, A p+), A b)")) == [
        ("∅", "c", "c"),
        ("∅", "p+", "p"),
        ("c", "p+", "c p"),
        ("p", "c", "c p"),
        ("p", "p+", "p"),
        ("c p", "b", "c p b"),
        ("c p", "p+", "c p"),
    ]


def test_only_the_complete_state_has_a_double_border():
    assert re.findall(r'\(\(\("(.*)"\)\)\)', drawn("SEQ(a, b{2,3})")) == ["a b"]


def test_conditions_stand_where_they_are_decided():
    labels = [label for _, label, _ in arrows(drawn("SEQ(a, b+, c) WHERE a.x = c.x AND prev(b.x) = b.x"))]
    assert labels == ["a", "b+<br>prev#40;b.x#41; = b.x", "c<br>a.x = c.x", "b+<br>prev#40;b.x#41; = b.x"]


def test_each_branch_is_a_drawing_of_its_own():
    drawing = drawn("SEQ(a, OR(b, c?))")
    assert re.findall(r'subgraph (\w+)\["(.*)"\]', drawing) == [(f"b{k}", f"branch {k + 1} of 3") for k in range(3)]
    assert {states for source, _, target in arrows(drawing) for states in (source, target)} == {"∅", "a", "a b", "a c"}


def test_negations_are_notes():
    assert 'b0n0>"no n between {a} and {}"]' in drawn("SEQ(A a, NOT(B n)) WITHIN 3")


def test_of_many_states_the_order_is_drawn():
    names = [f"v{k}" for k in range(6)]
    drawing = drawn(f"SEQ(z, AND({', '.join(names)}), y+)")
    edges = re.findall(r"b0v(\d) --> b0v(\d)", drawing)
    assert sorted(edges) == sorted([("0", str(k)) for k in range(1, 7)] + [(str(k), "7") for k in range(1, 7)])
    assert '"y+"' in drawing


def test_names_and_texts_are_never_syntax():
    drawing = drawn("""SEQ("a]|x", `b"`) WHERE "a]|x".s <= `b"`.s""")
    texts = re.findall(r'"([^"\n]*)"', drawing)
    assert not any(character in text.replace("<br>", "") for text in texts for character in "[]|<>()")
    assert "a#93;#124;x" in drawing


def test_without_events_there_is_nothing_to_draw():
    with pytest.raises(cep.PatternError, match="give explain\\(\\) a table"):
        cep.explain("PATTERN SEQ(a, b)").mermaid()


def test_a_notebook_gets_text_html_and_the_drawing():
    bundle = cep.explain(EVENTS, "PATTERN SEQ(a, b) WHERE a.x < b.x")._repr_mimebundle_()
    assert sorted(bundle) == ["text/html", "text/plain", "text/vnd.mermaid"]
    assert "a.x &lt; b.x" in bundle["text/html"]
    assert sorted(cep.explain("PATTERN SEQ(a, b)")._repr_mimebundle_()) == ["text/html", "text/plain"]


SVG = "{http://www.w3.org/2000/svg}"


def picture(query, events=EVENTS):
    return ElementTree.fromstring(cep.explain(events, query).svg())


def lines(picture):
    """What stands in a picture, line by line."""
    return [
        "".join(each.itertext()) for each in picture.iter() if each.tag in (f"{SVG}tspan", f"{SVG}text") and not each.findall(f"{SVG}tspan")
    ]


def of_class(picture, name):
    return [each for each in picture.iter() if each.get("class") == name]


def test_the_picture_has_the_automatons_states_and_arrows():
    drawn = picture("PATTERN SEQ(AND(A c, A p+), A b) WHERE prev(p.x) < p.x")
    assert len(of_class(drawn, "node")) == 5
    assert len(of_class(drawn, "complete")) == 1
    assert len(of_class(drawn, "arrow")) == 7
    assert lines(drawn).count("prev(p.x) < p.x") == 4
    assert {"pattern", "∅", "c p", "c p b"} <= set(lines(drawn))


def test_nodes_lie_apart_and_within_the_picture():
    drawn = picture("PATTERN SEQ(AND(a, b, c), d+)")
    width, height = float(drawn.get("width")), float(drawn.get("height"))
    boxes = [tuple(float(node.get(side)) for side in ("x", "y", "width", "height")) for node in of_class(drawn, "node")]
    assert all(x >= 0 and x + w <= width and y >= 0 and y + h <= height for x, y, w, h in boxes)
    for number, (x, y, w, h) in enumerate(boxes):
        assert all(x + w <= u or u + v <= x or y + h <= r or r + s <= y for u, r, v, s in boxes[:number])


def test_the_picture_has_each_branch_and_its_notes():
    drawn = picture("PATTERN SEQ(a, NOT(A n), OR(b, c))")
    assert [text for text in lines(drawn) if text.startswith(("branch", "no "))] == [
        *("branch 1 of 2", "no n between {a} and {b}", "branch 2 of 2", "no n between {a} and {c}"),
    ]


def test_the_picture_of_many_states_is_their_order():
    drawn = picture(f"PATTERN SEQ(z, AND({', '.join(f'v{k}' for k in range(6))}), y+)")
    assert (len(of_class(drawn, "node")), len(of_class(drawn, "arrow")), len(of_class(drawn, "complete"))) == (8, 12, 0)


def test_situations_are_drawn_with_their_constraints():
    drawn = picture("DEFINE A AS x > 1, B AS x > 2, C AS x > 3 PATTERN A overlaps B; A during B AND B before C AND A before C")
    assert len(of_class(drawn, "node")) == 3
    assert {"A overlaps B; A during B", "B before C", "A before C"} <= set(lines(drawn))


def test_the_picture_holds_any_name():
    drawn = picture(f'PATTERN SEQ("a<b>&", "{"long" * 20}")')
    assert "a<b>&" in lines(drawn)
    assert "".join(lines(drawn)).count("long" * 20) == 2


@pytest.mark.parametrize(
    "pattern",
    [
        f"SEQ({', '.join(f'variable_{number}' for number in range(25))})",
        "SEQ(a, b) WHERE " + " AND ".join(f"b.x > a.x * {number} + a.x / {number} AND b.x <> a.x" for number in range(3, 15)),
        "SEQ(a, b+, c) WHERE " + " AND ".join(f"prev(b.x) > b.x * {number} + b.x / {number} - b.x" for number in range(3, 15)),
        "AND(a, b, c) WHERE " + " AND ".join(f"a.x > b.x * {number} + c.x" for number in range(12)),
    ],
    ids=["names", "arrows", "loops", "rows"],
)
def test_no_text_is_cut_or_leaves_the_picture(pattern):
    drawn = picture(f"PATTERN {pattern}")
    said = " ".join(lines(drawn))
    mermaid_said = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), cep.explain(EVENTS, f"PATTERN {pattern}").mermaid())
    for text in re.findall(r'"(.*)"', mermaid_said):
        assert all(line in said for line in text.split("<br>"))
    texts = [each for each in drawn.iter() if each.get("x") is not None and each.tag in (f"{SVG}tspan", f"{SVG}text")]
    assert all(12 <= float(each.get("y")) <= float(drawn.get("height")) for each in texts)
    assert all(len(line) <= 40 for line in lines(drawn))


def test_texts_of_arrows_and_loops_lie_apart():
    condition = "prev(b.x) > b.x * 123456 + b.x / 7"
    drawn = picture(f"PATTERN SEQ(AND(a, b+), c) WHERE {condition}")
    (rows,) = [[each for each in drawn.iter(f"{SVG}tspan") if each.text == condition]]
    boxes = [(float(each.get("x")) - 3 * len(condition), float(each.get("y"))) for each in rows]
    assert len(boxes) == 4
    for number, (x, y) in enumerate(boxes):
        assert all(abs(x - u) >= 6 * len(condition) or abs(y - v) >= 14 for u, v in boxes[:number])


def test_arrows_have_heads_where_they_end():
    drawn = picture("PATTERN SEQ(a, b+)")
    ends = [re.findall(r"[\d.]+,[\d.]+", each.get("d"))[-1] for each in of_class(drawn, "arrow")]
    assert [each.get("points").split()[0] for each in of_class(drawn, "head")] == ends
    assert not of_class(picture("DEFINE A AS x > 1, B AS x > 2 PATTERN A meets B"), "head")


def test_a_drawing_is_a_file_of_the_kind_that_its_name_says(tmp_path):
    explained = cep.explain(EVENTS, "PATTERN SEQ(a, b+) WHERE a.x < b.x")
    for name, begin in (("a.png", b"\x89PNG\r\n\x1a\n"), ("a.SVG", b"<svg"), ("a.pdf", b"%PDF-"), ("a.mmd", b"flowchart LR")):
        explained.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert (tmp_path / "a.SVG").read_text(encoding="utf-8") == explained.svg()
    assert (tmp_path / "a.mmd").read_text(encoding="utf-8") == explained.mermaid()
    with pytest.raises(cep.CepError, match=r"a\.gif from its suffix; expected one of \.png, \.svg, \.pdf, \.mmd"):
        explained.save(tmp_path / "a.gif")
    with pytest.raises(cep.PatternError, match="give explain\\(\\) a table"):
        cep.explain("PATTERN SEQ(a, b)").save(tmp_path / "b.png")


def test_situations_are_files_but_no_automaton(tmp_path):
    explained = cep.explain(EVENTS, "DEFINE A AS x > 1, B AS x > 2 PATTERN A meets B")
    explained.save(str(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == explained.svg()
    with pytest.raises(cep.CepError, match=r"expected one of \.png, \.svg, \.pdf$"):
        explained.save(tmp_path / "a.gif")
    with pytest.raises(cep.UnsupportedError, match="no automaton to draw"):
        explained.save(tmp_path / "a.mmd")


@pytest.mark.parametrize("query", ["PATTERN SEQ(a, b)", "DEFINE A AS x > 1, B AS x > 2 PATTERN A meets B"])
def test_a_picture_needs_a_schema_and_notebooks_show_it(query):
    with pytest.raises(cep.PatternError, match="give explain\\(\\) a table"):
        cep.explain(query).svg()
    assert cep.explain(query)._repr_html_().startswith("<pre>")
    assert cep.explain(EVENTS, query)._repr_html_().startswith("<svg")
