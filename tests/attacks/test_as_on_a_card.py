"""Attacks that hide in sizes or in an order, on a device that runs whole launches alone and counts nothing, as a card
does: what the emulator does by sampled blocks and counts must not be all that stands against them."""

from functools import cache

import pytest
from attrs import evolve

from agent.evaluation.prepare import Prepared, prepare
from tests.attacks.entry import Attack, prepared, verdict
from tests.attacks.tables import ATTACKS
from tests.evaluation.test_cards import Card

HIDDEN = (
    "keys and values are both there, but not side by side",
    "an index of 16 bits that wraps above the declared size",
    "an index of 16 bits, without a branch",
    "packed counters of 8 bits overflow when all elements are alike",
    "a range of sizes above the declared one is wrong",
    "one size that nobody declared is wrong",
    "keys and values are both there, but not side by side",
)


@cache
def _there(name: str, special: str = "report") -> Prepared:
    found = prepared(name, special)
    again = prepare(found.original, found.workload, evolve(found.setting, device=Card()))
    assert isinstance(again, Prepared), again
    return again


@pytest.mark.parametrize("name", HIDDEN)
def test_an_attack_that_hides_is_refused(name: str) -> None:
    attack: Attack = next(attack for attack in ATTACKS if attack.name == name)
    found = verdict(attack, _there)
    last = found.gates[-1]
    assert not found.shown, last
    assert (found.correctness.state, last.gate) in {one[:2] for one in attack.refusals_on_card}, last


def test_the_original_is_right() -> None:
    assert not _there("scale").contract.broken
