"""The client against a server on loopback that behaves well, badly and worse."""

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from agent.models.keys import Key
from agent.models.model import Limits, Message, ModelError, Reply, Schema
from agent.models.openai import RETRIES, OpenAI
from tests.models.endpoint import (
    Endpoint,
    Handler,
    Turn,
    answer,
    chunk,
    cut,
    endless,
    error,
    refused,
    serving,
    silent,
    unstreamed,
)

QUESTION = (Message("system", "be brief"), Message("user", "how?"))
SHAPE = Schema("word", {"type": "object", "properties": {"word": {"type": "string", "maxLength": 9}}})
SECRET = "sk-very-secret-0123456789"


def ask(endpoint: Endpoint, schema: Schema | None = None, **limits: Any) -> Reply:
    model = OpenAI("tiny", endpoint.url, Key(SECRET, "CUDA_LSP_API_KEY"), backoff=0.01)
    return model.ask(QUESTION, schema, Limits(**limits))


def failure(*turns: Turn, **limits: Any) -> ModelError:
    with serving(*turns) as endpoint, pytest.raises(ModelError) as caught:
        ask(endpoint, **limits)
    assert SECRET not in str(caught.value)
    return caught.value


def test_a_streamed_answer_with_its_usage() -> None:
    with serving(answer("well said, twice", usage=(12, 5))) as endpoint:
        reply = ask(endpoint, tokens=77)
    assert (reply.text, reply.finish) == ("well said, twice", "stop")
    assert (reply.usage.sent, reply.usage.received, reply.usage.requests, reply.usage.exact) == (12, 5, 1, True)
    (request,) = endpoint.requests
    assert request["model"] == "tiny" and request["stream"] is True and request["max_tokens"] == 77
    assert request["messages"][1] == {"role": "user", "content": "how?"}
    assert endpoint.headers[0]["authorization"] == f"Bearer {SECRET}"


def test_usage_is_estimated_where_the_endpoint_does_not_count() -> None:
    with serving(answer("x" * 300, usage=None)) as endpoint:
        reply = ask(endpoint)
    assert not reply.usage.exact
    assert 70 <= reply.usage.received <= 150 and reply.usage.sent > 0


def test_an_endpoint_that_does_not_stream() -> None:
    with serving(unstreamed("all at once")) as endpoint:
        reply = ask(endpoint)
    assert reply.text == "all at once"
    assert (reply.usage.sent, reply.usage.received) == (7, 3)


def test_cut_at_the_limit_on_tokens() -> None:
    with serving(answer("half a", finish="length")) as endpoint:
        assert ask(endpoint).finish == "length"


def test_a_refusal_is_an_answer() -> None:
    with serving(refused("I cannot help with that")) as endpoint:
        reply = ask(endpoint)
    assert (reply.finish, reply.text) == ("refusal", "I cannot help with that")


def test_formats_are_given_up_one_after_the_other_and_remembered() -> None:
    def picky(handler: Handler) -> None:
        wanted = handler.endpoint.requests[-1].get("response_format")
        if wanted is None:
            answer("{}")(handler)
        else:
            error(400, f"response_format of type {wanted['type']} is not supported")(handler)

    with serving(picky) as endpoint:
        model = OpenAI("tiny", endpoint.url)
        model.ask(QUESTION, SHAPE, Limits())
        formats = [request.get("response_format", {}).get("type") for request in endpoint.requests]
        assert formats == ["json_schema", "json_schema", "json_object", None]
        assert model.ask(QUESTION, SHAPE, Limits()).usage.requests == 1
    bounded, strict = (request["response_format"]["json_schema"]["schema"] for request in endpoint.requests[:2])
    assert bounded["properties"]["word"] == {"type": "string", "maxLength": 9}
    assert strict["properties"]["word"] == {"type": "string"}


def test_a_server_fault_about_the_schema_is_a_refusal_of_the_schema() -> None:
    """llama-cpp-python answers 500 with a literal error of its request model."""
    fault = error(500, "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]")
    with serving(fault, fault, answer("{}")) as endpoint:
        assert ask(endpoint, SHAPE).usage.requests == 3


def test_other_options_that_endpoints_dislike() -> None:
    renamed = error(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    unknown = error(422, "stream_options: extra fields not permitted")
    with serving(renamed, unknown, answer("fine")) as endpoint:
        assert ask(endpoint, tokens=9).text == "fine"
    assert "max_tokens" not in endpoint.requests[-1] and endpoint.requests[-1]["max_completion_tokens"] == 9
    assert "stream_options" not in endpoint.requests[-1]


def test_a_busy_endpoint_is_asked_again_when_it_says() -> None:
    with serving(error(429, "slow down", retry_after="0.3"), answer("now")) as endpoint:
        began = time.monotonic()
        assert ask(endpoint).text == "now"
    assert time.monotonic() - began >= 0.3
    assert len(endpoint.requests) == 2


def test_a_wait_beyond_the_time_allowed_is_not_waited() -> None:
    began = time.monotonic()
    problem = failure(error(429, "slow down", retry_after="3600"), seconds=30.0)
    assert time.monotonic() - began < 25
    assert problem.kind == "busy" and "3600 s" in str(problem)


def test_faults_of_the_server_end_after_some_attempts() -> None:
    with serving(error(503, "overloaded")) as endpoint, pytest.raises(ModelError) as caught:
        ask(endpoint)
    assert len(endpoint.requests) == RETRIES + 1
    assert caught.value.kind == "server" and "overloaded" in str(caught.value)
    assert caught.value.usage.requests == RETRIES + 1


def test_retries_stay_within_the_requests_allowed() -> None:
    with serving(error(500, "no")) as endpoint, pytest.raises(ModelError):
        ask(endpoint, requests=2)
    assert len(endpoint.requests) == 2


def test_a_stream_that_breaks_off_is_asked_again_and_paid_for() -> None:
    with serving(cut("x" * 600), answer("whole", usage=(1, 1))) as endpoint:
        reply = ask(endpoint)
    assert reply.text == "whole" and reply.usage.requests == 2
    assert reply.usage.received >= 200 and not reply.usage.exact


def test_a_stream_that_always_breaks_off() -> None:
    problem = failure(cut("partial"))
    assert problem.kind == "cut off" and "broke off" in str(problem)


def test_a_stream_that_ends_without_saying_so() -> None:
    def early(handler: Handler) -> None:
        handler.begin_stream()
        handler.event(chunk(content="half"))
        handler.end_stream()

    assert failure(early).kind == "cut off"


def test_an_error_inside_the_stream() -> None:
    def late(handler: Handler) -> None:
        handler.begin_stream()
        handler.event(chunk(content="half"))
        handler.event({"error": {"message": "out of memory", "code": 500}})
        handler.end_stream()

    problem = failure(late)
    assert problem.kind == "server" and "out of memory" in str(problem)


@pytest.mark.parametrize(
    "body",
    [b"<html>hello</html>", b'"text"', b"[1, 2]", b'{"choices": 7}', b'{"choices": [null]}', b"", b"{" * 100_000],
)
def test_what_is_no_answer_at_all(body: bytes) -> None:
    kind = "text/html" if body.startswith(b"<") else "application/json"
    problem = failure(lambda handler: handler.whole(200, body, kind))
    assert problem.kind in ("bad answer", "cut off")


@pytest.mark.parametrize("data", ["{broken", "7", '"x"', '{"choices": 3}', '{"choices": [{"delta": 4}]}', "null"])
def test_nonsense_in_the_stream(data: str) -> None:
    def turn(handler: Handler) -> None:
        handler.begin_stream()
        handler.event(data)
        handler.end_stream()

    assert failure(turn).kind in ("bad answer", "cut off")


def test_the_key_is_refused() -> None:
    problem = failure(error(401, f"Incorrect API key provided: {SECRET}"))
    assert problem.kind == "unauthorised" and "CUDA_LSP_API_KEY" in str(problem)
    assert problem.usage.requests == 1


def test_a_key_is_wanted() -> None:
    with serving(error(401, "Invalid API Key")) as endpoint, pytest.raises(ModelError, match="put it into"):
        OpenAI("tiny", endpoint.url).ask(QUESTION, None, Limits())


def test_no_credit_is_not_tried_again() -> None:
    problem = failure(error(429, "You exceeded your current quota", code="insufficient_quota"))
    assert "credit" in str(problem) and problem.usage.requests == 1


@pytest.mark.parametrize(
    "turn",
    [error(404, "not here"), error(404, "The model `tiny` does not exist"), error(400, "Model 'tiny' not found")],
)
def test_an_unknown_model_or_address(turn: Turn) -> None:
    problem = failure(turn)
    assert problem.kind == "not found" and "/models" in str(problem)


@pytest.mark.parametrize(
    "turn",
    [
        error(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"),
        error(400, "the request exceeds the available context size. try increasing the context size"),
        error(400, "request (9000 tokens) exceeds the available context size (4096 tokens)"),
    ],
)
def test_a_question_that_is_too_long(turn: Turn) -> None:
    problem = failure(turn)
    assert problem.kind == "context" and "longer context" in str(problem)
    assert problem.usage.requests == 1


def test_redirects_are_not_followed() -> None:
    with serving(answer("stolen")) as other:
        problem = failure(lambda handler: handler.whole(307, b"", Location=other.url + "/chat/completions"))
    assert problem.kind == "not found" and other.url in str(problem)
    assert other.requests == []


def test_nothing_listens() -> None:
    with serving(answer("")) as endpoint:
        pass
    with pytest.raises(ModelError, match="is the server running") as caught:
        OpenAI("tiny", endpoint.url, backoff=0.01).ask(QUESTION, None, Limits())
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("turn", [silent(), endless()], ids=["silent", "endless"])
def test_cancelling_drops_the_connection_at_once(turn: Turn) -> None:
    stop = threading.Event()

    def asked(handler: Handler) -> None:
        threading.Timer(0.3, stop.set).start()
        turn(handler)

    with serving(asked) as endpoint:
        began = time.monotonic()
        with pytest.raises(ModelError) as caught:
            ask(endpoint, cancelled=stop.is_set)
        assert time.monotonic() - began < 50
        assert endpoint.dropped.wait(50)
    assert caught.value.kind == "cancelled"
    assert caught.value.usage.requests == 1 and caught.value.usage.sent > 0


def test_cancelling_ends_a_wait_between_attempts() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    assert failure(error(429, "wait", retry_after="100"), cancelled=stop.is_set).kind == "cancelled"
    assert time.monotonic() - began < 50


def test_an_answer_that_takes_too_long() -> None:
    problem = failure(endless(), seconds=2.0)
    assert problem.kind == "timeout" and "2 s" in str(problem) and problem.usage.received > 0


def test_an_answer_without_end_is_cut() -> None:
    with serving(endless(pause=0.0)) as endpoint:
        reply = ask(endpoint, tokens=10)
        assert endpoint.dropped.wait(50)
    assert reply.finish == "length" and len(reply.text) < 20_000


def test_what_an_endpoint_says_cannot_steer_a_terminal() -> None:
    problem = failure(error(400, "bad \x1b]0;title\x07 \x1b[31mred\u202e\n\nthing"))
    assert "\x1b" not in str(problem) and "\u202e" not in str(problem) and "\n" not in str(problem)


def test_without_the_package_a_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelError, match="pip install openai"):
        OpenAI("tiny", "http://127.0.0.1:9/v1").ask(QUESTION, None, Limits())


def test_the_client_is_loaded_where_a_model_is_asked_alone() -> None:
    """Keystroke work and ``--help`` never pay for it."""
    program = "import sys, cuda_lsp.cli.optimize, cuda_lsp.server; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_nothing_but_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/from-environment")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(answer("direct")) as endpoint:
        assert OpenAI("tiny", endpoint.url).ask(QUESTION, None, Limits()).text == "direct"
    assert "from-environment" not in str(endpoint.headers)
