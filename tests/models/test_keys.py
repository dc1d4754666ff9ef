"""Addresses, and which key goes where."""

import pytest

from agent.models.keys import BadEndpoint, Key, find_key, is_loopback, is_open, read_endpoint

BOTH = {"CUDA_LSP_API_KEY": "own-key-0123", "OPENAI_API_KEY": "sk-openai-0123"}


def test_openais_key_goes_to_openai_alone() -> None:
    only = {"OPENAI_API_KEY": BOTH["OPENAI_API_KEY"]}
    assert find_key("https://api.openai.com/v1", only).value == "sk-openai-0123"
    for elsewhere in ("https://evil.example/v1", "http://127.0.0.1:8080/v1", "https://api.openai.com.evil.example/v1"):
        assert find_key(elsewhere, only).value == ""
    assert find_key("https://evil.example/v1", BOTH).origin == "CUDA_LSP_API_KEY"
    assert find_key("https://api.openai.com/v1", {}) == Key()


@pytest.mark.parametrize(
    ("address", "local", "readable"),
    [
        ("http://127.0.0.1:8080/v1", True, False),
        ("http://127.9.9.9/v1", True, False),
        ("http://localhost:1234/v1", True, False),
        ("http://[::1]:8080/v1", True, False),
        ("http://localhost.evil.example/v1", False, True),
        ("http://127.0.0.1.evil.example/v1", False, True),
        ("http://10.0.0.5:8000/v1", False, True),
        ("https://api.openai.com/v1", False, False),
    ],
)
def test_which_addresses_are_this_machine(address: str, local: bool, readable: bool) -> None:
    assert (is_loopback(address), is_open(address)) == (local, readable)


def test_an_address_in_its_plain_form() -> None:
    assert read_endpoint(" https://api.example.com/v1/ ") == "https://api.example.com/v1"


@pytest.mark.parametrize(
    "address",
    ["", "api.example.com", "ftp://x/v1", "http://", "https://user:hunter2@x/v1", "https://x/v1?api-key=hunter2",
     "http://x:99999999/v1", "http://[::1/v1", "file:///etc/passwd"],
)  # fmt: skip
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(BadEndpoint) as caught:
        read_endpoint(address)
    assert "hunter2" not in str(caught.value)


def test_a_key_is_not_shown() -> None:
    key = Key("sk-secret-0123", "CUDA_LSP_API_KEY")
    assert "sk-secret" not in repr(key)
    assert key.hidden("bad key sk-secret-0123!") == "bad key [key]!"
    assert Key("none").hidden("none of it") == "none of it"
