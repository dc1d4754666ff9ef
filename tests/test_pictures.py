"""Bars that add up, in well-formed SVG."""

from xml.etree import ElementTree

from tests.pictures import LABEL, WIDTH, bars

SVG = "{http://www.w3.org/2000/svg}"


def test_parts_stand_side_by_side() -> None:
    drawn = ElementTree.fromstring(bars("a < b", [("one", {"x": 1.0, "y & z": 3.0}), ("two", {"y & z": 2.0})], "s"))
    parts = [one for one in drawn.iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]
    spans = [(float(one.get("x")), float(one.get("x")) + float(one.get("width"))) for one in parts]
    assert spans[0][0] == LABEL and abs(spans[0][1] - spans[1][0]) < 0.2
    whole = spans[1][1] - spans[0][0]
    assert abs((spans[2][1] - spans[2][0]) / whole - 0.5) < 0.01
    assert max(end for _, end in spans) < WIDTH
    texts = [one.text for one in drawn.iter(f"{SVG}text")]
    assert "a < b" in texts and "4.0 s" in texts and texts.count("y & z") == 1


def test_nothing_to_draw() -> None:
    ElementTree.fromstring(bars("none", [], "s"))
