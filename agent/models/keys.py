"""Where an endpoint is, and which key may go there. A key is a value whose text is never shown."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import field, frozen

OWN_KEY = "CUDA_LSP_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
_OPENAI_HOSTS = ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
_SECRET_LENGTH = 8


class BadEndpoint(ValueError):
    """The address cannot be used; the message says why and what to give instead."""


@frozen
class Key:
    """``origin`` says where it came from. An empty one is none."""

    value: str = field(default="", repr=False)
    origin: str = ""

    def hidden(self, text: str) -> str:
        """``text`` without the key. A very short one (``none``, ``EMPTY``) is no secret, and a word of any text."""
        return text.replace(self.value, "[key]") if len(self.value) >= _SECRET_LENGTH else text


def read_endpoint(text: str) -> str:
    """The address in its plain form, without a slash at the end. Raises BadEndpoint."""
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadEndpoint(f"{_shown(address)} is no address ({error})") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadEndpoint(f"{_shown(address)} is no endpoint; give an address such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadEndpoint(f"an endpoint holds no user name, password or query; put the key into {OWN_KEY}")
    return address


def _shown(address: str) -> str:
    """What may be repeated of an address that is wrong: nothing that could be a password."""
    return "the endpoint" if "@" in address or "?" in address else f"`{address[:80]}`"


def host_of(endpoint: str) -> str:
    return urlsplit(endpoint).hostname or ""


def is_loopback(endpoint: str) -> bool:
    """Whether it is this machine by its name or number; no name is looked up."""
    host = host_of(endpoint)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_open(endpoint: str) -> bool:
    """Whether what goes there can be read on the way."""
    return urlsplit(endpoint).scheme == "http" and not is_loopback(endpoint)


def find_key(endpoint: str, environment: Mapping[str, str]) -> Key:
    """The key for an endpoint: ours goes to the endpoint that was agreed to, OpenAI's to OpenAI alone."""
    if own := environment.get(OWN_KEY, "").strip():
        return Key(own, OWN_KEY)
    if host_of(endpoint) in _OPENAI_HOSTS and (theirs := environment.get(OPENAI_KEY, "").strip()):
        return Key(theirs, OPENAI_KEY)
    return Key()
