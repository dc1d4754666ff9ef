"""Hard caps on what a model may cost, and the account of what it did cost."""

import time
from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from agent.models.model import Limits, Message, Model, ModelError, Reply, Schema, Usage, estimated_tokens

LEAST_ANSWER = 256
"""Tokens: with less left, a question is not worth asking."""


@frozen
class Price:
    """In US dollars for a million tokens, as providers state it."""

    sent: float
    received: float

    def of(self, usage: Usage) -> float:
        """Dollars."""
        return (usage.sent * self.sent + usage.received * self.received) / 1e6


@frozen
class Caps:
    """Of one search: ``tokens`` sent and received, ``dollars`` (only with a known price), ``requests``, ``seconds``
    spent waiting for answers. None is no cap."""

    tokens: int | None = 200_000
    dollars: float | None = None
    requests: int | None = 100
    seconds: float | None = None


@frozen
class Budget:
    """What is allowed and what it costs. Without a ``price`` no cap on money can be kept, and :meth:`note` says so."""

    caps: Caps = Caps()
    price: Price | None = None

    def note(self, name: str) -> str:
        """What the user has to know about the cap on money; empty where there is nothing to say."""
        if self.caps.dollars is None or self.price is not None:
            return ""
        tokens = f"{self.caps.tokens} tokens" if self.caps.tokens is not None else "no cap on tokens either"
        return (
            f"the price of {name} is not known, so that the cap of ${self.caps.dollars:g} cannot be kept "
            f"({tokens}). State `price-in` and `price-out`, in dollars for a million tokens, under [model]"
        )


@define(eq=False)
class Metered:
    """A model within a budget. What a question may take is cut to what is left; where nothing is left, it is not
    asked. ``cancelled`` ends a question under way. After a failure that asking again would not mend (a key that is
    refused, nobody who answers), nothing is asked any more: ``ended`` says why."""

    model: Model
    budget: Budget
    cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)
    used: Usage = field(factory=Usage)
    waited: float = 0.0
    ended: ModelError | None = None

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def place(self) -> str:
        return self.model.place

    @property
    def dollars(self) -> float | None:
        return None if self.budget.price is None else self.budget.price.of(self.used)

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        """As :meth:`Model.ask`; ModelError of kind ``caps`` where the budget does not cover the question."""
        if self.ended is not None:
            raise ModelError(self.ended.kind, str(self.ended))
        allowed = self._within(messages, limits)
        began = time.monotonic()
        try:
            reply = self.model.ask(messages, schema, allowed)
        except ModelError as error:
            self.used += error.usage
            self.ended = error if error.final else None
            raise
        finally:
            self.waited += time.monotonic() - began
        self.used += reply.usage
        return reply

    def _within(self, messages: Sequence[Message], limits: Limits) -> Limits:
        caps, price = self.budget.caps, self.budget.price
        sent = estimated_tokens(*(message.text for message in messages))
        tokens, seconds, requests = limits.tokens, limits.seconds, limits.requests
        if caps.tokens is not None:
            tokens = min(tokens, caps.tokens - self.used.tokens - sent)
            self._enough(tokens, f"the {caps.tokens} tokens that it may use")
        if caps.dollars is not None and price is not None and price.received + price.sent > 0:
            left = caps.dollars - price.of(self.used) - price.of(Usage(sent))
            tokens = min(tokens, int(left * 1e6 / max(price.received, 1e-9)) if left > 0 else 0)
            self._enough(tokens, f"the ${caps.dollars:g} that it may cost")
        if caps.requests is not None:
            requests = min(requests, caps.requests - self.used.requests)
            if requests < 1:
                raise ModelError("caps", f"the {caps.requests} requests that {self.name} may get are used up")
        if caps.seconds is not None:
            seconds = min(seconds, caps.seconds - self.waited)
            if seconds <= 0:
                raise ModelError("caps", f"the {caps.seconds:g} s that {self.name} may take are used up")
        return evolve(
            limits,
            tokens=tokens,
            seconds=seconds,
            requests=requests,
            cancelled=lambda: self.cancelled() or limits.cancelled(),
        )

    def _enough(self, tokens: int, what: str) -> None:
        if tokens < LEAST_ANSWER:
            raise ModelError("caps", f"{what} do not cover the next question to {self.name}")
