"""What an endpoint's refusals mean, in words that say what to do."""

import re
from collections.abc import Mapping

from attrs import frozen

from agent.models.keys import OPENAI_KEY, OWN_KEY, Key, is_loopback
from agent.models.words import one_line

_CONTEXT = re.compile(
    r"context.{0,20}(length|size|window|exceed|limit)|exceed.{0,60}context|maximum context|too many tokens|"
    r"prompt.{0,20}too long|input.{0,20}too long",
    re.IGNORECASE | re.DOTALL,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not found|does ?n[o']t exist|not exist|unknown|no such|not available|invalid)|"
    r"(unknown|no such|invalid|unsupported) model",
    re.IGNORECASE | re.DOTALL,
)


@frozen
class Refusal:
    """``kind`` and ``message`` as in ModelError. ``retry``: another attempt may succeed, after ``wait`` seconds where
    the endpoint asked for them. ``said`` is the endpoint's own text, for telling which option it dislikes."""

    kind: str
    message: str
    retry: bool = False
    wait: float | None = None
    status: int = 0
    said: str = ""


def refusal(status: int, said: str, headers: Mapping[str, str], code: str, who: "Asked") -> Refusal:
    """What an HTTP status with the endpoint's words means."""
    words = one_line(who.key.hidden(said)) or "no reason given"
    tail = f" (HTTP {status}: {words})"

    def because(kind: str, message: str, retry: bool = False, wait: float | None = None) -> Refusal:
        return Refusal(kind, message + tail, retry, wait, status, said)

    if status in (401, 403):
        return because("unauthorised", who.about_key())
    if status == 402 or code == "insufficient_quota":
        return because("unauthorised", f"the account at {who.endpoint} has no credit left: look at its billing page")
    if status in (400, 413, 422, 500) and (code == "context_length_exceeded" or _CONTEXT.search(said)):
        return because(
            "context",
            f"the kernel and its facts do not fit the context of {who.model}: take a model with a longer context, or "
            "start the local server with one (llama-server -c 16384)",
        )
    if 300 <= status < 400:
        target = one_line(headers.get("location", ""), 120)
        return because("not found", f"{who.endpoint} points elsewhere ({target}): give that address if you trust it")
    if status == 404 or (status == 400 and _NO_MODEL.search(said)):
        return because(
            "not found",
            f"{who.endpoint} knows no model {who.model}, or is no OpenAI-compatible address (most end in /v1); "
            f"`curl {who.endpoint}/models` lists the models",
        )
    if status in (408, 409, 429) or status >= 500:
        kind = "busy" if status == 429 else "server"
        words = "is at its rate limit" if status == 429 else "has a fault of its own"
        return because(kind, f"{who.endpoint} {words}; try again later", True, _wait(headers))
    return because("server", f"{who.endpoint} refuses the question")


@frozen
class Asked:
    """Who was asked."""

    endpoint: str
    model: str
    key: Key

    def about_key(self) -> str:
        if self.key.value:
            return f"{self.endpoint} refuses the key from {self.key.origin}: check that it is valid there"
        other = "" if is_loopback(self.endpoint) else f" ({OPENAI_KEY} is sent to OpenAI's own address only)"
        return f"{self.endpoint} wants a key: put it into the environment variable {OWN_KEY}{other}"

    def unreachable(self, cause: str) -> Refusal:
        hint = "is the server running" if is_loopback(self.endpoint) else "is the address right, and the network up"
        said = one_line(self.key.hidden(cause), 160)
        return Refusal("connection", f"nothing answers at {self.endpoint}: {hint}? ({said})", True)

    def cut_off(self, cause: str) -> Refusal:
        said = one_line(self.key.hidden(cause), 160)
        return Refusal("cut off", f"the answer of {self.endpoint} broke off ({said})", True)

    def nonsense(self, cause: str) -> Refusal:
        said = one_line(self.key.hidden(cause), 160)
        return Refusal("bad answer", f"{self.endpoint} does not speak the OpenAI protocol ({said})", True)


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait. A date (which HTTP allows) is taken as no wish: clocks differ."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            value = float(headers.get(name, "")) / scale
        except ValueError:
            continue
        if 0 <= value < 1e6:
            return value
    return None
