"""Any endpoint that speaks OpenAI's chat completions: a provider's, or a server on this machine.

The answer is streamed, so that cancelling drops the connection at once and the endpoint stops working. Nothing is
taken from the environment but proxies (and none of those for this machine's own servers); redirects are not followed,
because the user agreed to one address.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from agent.models.dialect import Dialect
from agent.models.failures import Asked, Refusal, refusal
from agent.models.keys import Key, is_loopback
from agent.models.model import Limits, Message, ModelError, Reply, Schema, Usage, estimated_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

RETRIES = 4
_POLL = 0.05
_LARGEST = 8 << 20
"""Bytes of an answer that is not streamed."""


@define(eq=False)
class OpenAI:
    """``backoff`` is the first wait in seconds before a retry; each further one is twice as long."""

    name: str
    place: str
    key: Key = field(factory=Key)
    backoff: float = 0.5
    _dialect: Dialect = field(factory=Dialect)

    def ask(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        """One answer. Raises ModelError; a KeyboardInterrupt ends it as well."""
        try:
            import openai  # noqa: F401
        except ImportError:
            raise ModelError("missing", "asking a model needs the package openai: pip install openai") from None
        return asyncio.run(self._supervised(messages, schema, limits))

    async def _supervised(self, messages: Sequence[Message], schema: Schema | None, limits: Limits) -> Reply:
        """The attempts as a task beside a watch on cancelling and time: ending the task closes its connection."""
        account = _Account(messages)
        task = asyncio.ensure_future(self._attempts(messages, schema, limits, account))
        ends = time.monotonic() + limits.seconds
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=_POLL)
                if done:
                    return task.result()
                if limits.cancelled():
                    raise ModelError("cancelled", "cancelled while the model was answering", account.usage())
                if time.monotonic() > ends:
                    raise ModelError(
                        "timeout", f"{self.place} did not finish its answer in {limits.seconds:g} s", account.usage()
                    )
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # seen: a task whose error nobody looked at complains

    async def _attempts(
        self, messages: Sequence[Message], schema: Schema | None, limits: Limits, account: "_Account"
    ) -> Reply:
        failures, ends = 0, time.monotonic() + limits.seconds
        while True:
            if limits.cancelled():
                raise ModelError("cancelled", "cancelled before the model was asked", account.usage())
            problem = await self._once(messages, schema, limits, account)
            if isinstance(problem, Reply):
                return problem
            simpler = self._dialect.simpler(problem.status, problem.said, schema) if problem.kind != "context" else None
            used_up = account.requests >= limits.requests
            if simpler is not None and not used_up:
                self._dialect = simpler
                continue
            failures += 1
            wait = problem.wait if problem.wait is not None else self._pause(failures)
            late = time.monotonic() + wait > ends
            if not problem.retry or failures > RETRIES or used_up or late:
                more = f"; it asks to wait {wait:.0f} s" if late and problem.wait is not None else ""
                raise ModelError(problem.kind, problem.message + more, account.usage())
            await asyncio.sleep(wait)

    def _pause(self, failures: int) -> float:
        return float(self.backoff * 2 ** (failures - 1) * random.uniform(1.0, 1.25))

    async def _once(
        self, messages: Sequence[Message], schema: Schema | None, limits: Limits, account: "_Account"
    ) -> "Reply | Refusal":
        """One request. Whatever goes wrong in it comes back as a value."""
        import openai

        who = Asked(self.place, self.name, self.key)
        account.begin()
        try:
            async with _client(self.place, self.key) as client:
                return await self._exchange(client, messages, schema, limits, account)
        except openai.APIStatusError as error:
            account.forget()
            body = error.body if isinstance(error.body, dict) else {}
            said = _text_of(body) or error.message
            return refusal(error.status_code, said, error.response.headers, str(error.code or ""), who)
        except openai.APITimeoutError as error:
            return who.unreachable(f"no answer in time: {error.__cause__ or error}")
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            if account.started:
                return who.cut_off(cause)
            account.forget()
            return who.unreachable(cause)
        except openai.APIError as error:
            return _in_stream(error, who)
        except _Broken as broken:
            return who.cut_off(str(broken)) if account.started else who.nonsense(str(broken))
        except ModelError:
            raise
        except Exception as error:  # what a server sends may break the client library anywhere
            cause = f"{type(error).__name__}: {error}"
            return who.cut_off(cause) if account.length else who.nonsense(cause)

    async def _exchange(
        self,
        client: "AsyncOpenAI",
        messages: Sequence[Message],
        schema: Schema | None,
        limits: Limits,
        account: "_Account",
    ) -> Reply:
        told: Any = [{"role": message.role, "content": message.text} for message in messages]
        stream: Any = await client.chat.completions.create(
            model=self.name, messages=told, **self._dialect.options(schema, limits.tokens)
        )
        try:
            account.started = True
            streamed = "event-stream" in stream.response.headers.get("content-type", "")
            chunks = _chunks(stream) if streamed else _whole(stream.response)
            async for chunk in chunks:
                account.take(chunk)
                if account.length > 16 * limits.tokens + 4096:
                    account.finish = account.finish or "length"
                    break
        finally:
            await stream.close()
        return account.reply()


class _Broken(Exception):
    """The answer ended before it was whole, or is none."""


@define
class _Account:
    """What came so far, of this attempt and of those before."""

    messages: Sequence[Message]
    before: Usage = field(factory=Usage)
    pieces: list[str] = field(factory=list)
    refused: list[str] = field(factory=list)
    length: int = 0
    finish: str = ""
    counted: Usage | None = None
    started: bool = False
    running: bool = False

    @property
    def requests(self) -> int:
        return self.before.requests + self.running

    def begin(self) -> None:
        self.before = self.usage()
        self.pieces, self.refused, self.length, self.finish, self.counted = [], [], 0, "", None
        self.started, self.running = False, True

    def forget(self) -> None:
        """The attempt was refused before a token was used."""
        self.counted = Usage(requests=1)

    def usage(self) -> Usage:
        if not self.running:
            return self.before
        if self.counted is not None:
            return self.before + self.counted
        sent = estimated_tokens(*(message.text for message in self.messages))
        return self.before + Usage(sent, -(-self.length // 3), 1, exact=False)

    def take(self, chunk: Any) -> None:
        """One piece of the answer, or the whole of it, as plain data."""
        if not isinstance(chunk, dict):
            raise _Broken("a piece of it is no object")
        usage = chunk.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int):
            received = usage.get("completion_tokens")
            self.counted = Usage(usage["prompt_tokens"], received if isinstance(received, int) else 0, 1)
        for choice in (chunk.get("choices") or [])[:1]:
            part = choice.get("delta") or choice.get("message") or {}
            for key, pieces in (("content", self.pieces), ("refusal", self.refused)):
                if isinstance(text := part.get(key), str):
                    pieces.append(text)
            # Thinking that a server streams apart is no part of the answer, but of what it costs.
            self.length += sum(len(text) for text in part.values() if isinstance(text, str))
            self.finish = choice.get("finish_reason") or self.finish

    def reply(self) -> Reply:
        text, refused = "".join(self.pieces), "".join(self.refused)
        if not self.finish and self.counted is None:
            raise _Broken("the stream ended early" if text else "an empty answer")
        if (refused and not text) or self.finish == "content_filter":
            return Reply(refused or text, "refusal", self.usage())
        return Reply(text, "length" if self.finish == "length" else "stop", self.usage())


def _client(endpoint: str, key: Key) -> "AsyncOpenAI":
    import openai

    trusting = not is_loopback(endpoint)  # a proxy from the environment would carry what was said to stay here
    client = openai.AsyncOpenAI(
        api_key=key.value or "none",
        base_url=endpoint,
        max_retries=0,
        timeout=3600.0,  # the watch on time is ours
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=trusting),
    )
    client.organization = client.project = None  # the SDK reads both from the environment
    return client


async def _chunks(stream: Any) -> AsyncIterator[Any]:
    async for chunk in stream:
        yield chunk.model_dump(warnings=False) if hasattr(chunk, "model_dump") else chunk


async def _whole(response: Any) -> AsyncIterator[Any]:
    """The answer of an endpoint that does not stream."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LARGEST:
            raise _Broken(f"more than {_LARGEST >> 20} MB")
    try:
        answer = json.loads(bytes(body))
    except (ValueError, RecursionError):
        kind = response.headers.get("content-type", "no type")
        raise _Broken(f"neither a stream nor JSON, but {kind}") from None
    yield answer


def _in_stream(error: Any, who: Asked) -> Refusal:
    """An error that came as a part of the stream, after HTTP said all was well."""
    body = error.body if isinstance(error.body, dict) else {}
    code = body.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return refusal(status, _text_of(body) or error.message, {}, str(code or ""), who)


def _text_of(body: dict[str, Any]) -> str:
    """The words of an error's body: OpenAI's form, FastAPI's, or whatever it is."""
    inner = body.get("error", body)
    told = inner.get("message") if isinstance(inner, dict) else inner
    told = told or body.get("message") or body.get("detail") or ""
    return told if isinstance(told, str) else json.dumps(told)[:2000]
