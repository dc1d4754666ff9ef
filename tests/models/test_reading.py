"""JSON out of whatever a model writes around it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.reading import fenced, json_object, without_thoughts
from agent.models.words import one_line


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        'Here you are:\n```json\n{"a": 1}\n```\nHope it helps!',
        '```\n{"a": 1}\n```',
        '```json\n{"a": 1}',
        'Sure! {"a": 1} is my answer',
        '<think>{"a": 2} or so?</think>\n{"a": 1}',
        'a set {x} and then {"a": 1}',
    ],
)
def test_found_however_it_is_wrapped(text: str) -> None:
    assert json_object(text) == {"a": 1}


def test_raw_line_ends_inside_strings() -> None:
    assert json_object('{"code": "a\nb\tc"}') == {"code": "a\nb\tc"}


@pytest.mark.parametrize("text", ["", "no", "[1, 2]", '"x"', "{", "{}{", '{"a": ', "{" * 50_000, "[" * 50_000])
def test_nothing_to_find(text: str) -> None:
    assert not json_object(text)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers() | st.lists(st.booleans()), min_size=1))
def test_what_was_wrapped_comes_back(value: dict[str, Any]) -> None:
    assert json_object(f"Well:\n```json\n{json.dumps(value)}\n```\n") == value


@given(st.text())
def test_any_text_is_read_without_harm(text: str) -> None:
    json_object(text)
    fenced(text)
    without_thoughts(text)
    assert "\n" not in one_line(text) and "\x1b" not in one_line(text) and len(one_line(text)) <= 300


def test_fenced_blocks() -> None:
    text = "one\n```cuda\nA\nB\n```\ntwo\n~~~\nC\n~~~\n```plan\nD"
    assert fenced(text) == (("cuda", "A\nB\n"), ("", "C\n"), ("plan", "D"))
