"""Against a real server and a real model: protocol, schema, streaming, cancelling, limits. What the model says is junk,
and the search must survive it and end honestly."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent.ideas.model.listing import schema
from agent.models.budget import Caps
from agent.models.keys import Key
from agent.models.model import Limits, Message, ModelError, Schema
from agent.models.openai import OpenAI
from agent.search import events
from tests.cli.running import TRANSPOSED, run_json
from tests.ideas.build import request
from tests.models.llama import KEY, llama
from tests.models.searching import searched_with

STORY = (Message("user", "Tell a very long story about a river."),)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llama() as address:
        yield address


@pytest.fixture(scope="module")
def endless() -> Iterator[str]:
    """A model that may end its story early, or a fast machine, would be done before it is cancelled."""
    with llama(endless=True) as address:
        yield address


def model(url: str, key: str = KEY) -> OpenAI:
    return OpenAI("smollm2", url, Key(key, "CUDA_LSP_API_KEY"), backoff=0.01)


def test_an_answer_with_its_usage(url: str) -> None:
    reply = model(url).ask((Message("user", "Say hello in one short sentence."),), None, Limits(tokens=32))
    assert len(reply.text) > 3 and reply.usage.exact and reply.usage.requests == 1
    assert 10 < reply.usage.sent < 100 and 1 < reply.usage.received <= 32


def test_the_limit_on_tokens_cuts(url: str) -> None:
    reply = model(url).ask(STORY, None, Limits(tokens=16))
    assert reply.finish == "length" and reply.usage.received == 16


def test_a_schema_is_kept(url: str) -> None:
    wanted = schema(request("__global__ void k(float* p, int n) { p[0] = 1; }", n=64), 1)
    reply = model(url).ask(
        (Message("user", "Give an idea that makes a CUDA kernel faster, as JSON."),), wanted, Limits(900)
    )
    assert reply.finish == "stop"
    # The server's grammar holds shapes and types; bounds of numbers it does not always keep, which reading allows for.
    jsonschema.validate(json.loads(reply.text), _without_bounds(dict(wanted.shape)))


def _without_bounds(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {key: _without_bounds(value) for key, value in shape.items() if key not in ("minimum", "maximum")}
    return [_without_bounds(one) for one in shape] if isinstance(shape, list) else shape


def test_a_schema_that_the_server_cannot_take_is_given_up(url: str) -> None:
    impossible = Schema("bad", {"$ref": "#/nowhere"})
    reply = model(url).ask((Message("user", "Answer with a JSON object."),), impossible, Limits(tokens=32))
    assert reply.text and reply.usage.requests > 1


def test_cancelling_frees_the_server(endless: str) -> None:
    stop = threading.Event()
    threading.Timer(0.7, stop.set).start()
    with pytest.raises(ModelError) as caught:
        model(endless).ask(STORY, None, Limits(tokens=3000, cancelled=stop.is_set))
    assert caught.value.kind == "cancelled"
    # One slot: were the story still being told, this would wait for its end.
    again = model(endless).ask((Message("user", "Say hello."),), None, Limits(tokens=4, seconds=20.0))
    assert again.usage.received <= 4


def test_too_slow_is_a_timeout(endless: str) -> None:
    with pytest.raises(ModelError) as caught:
        model(endless).ask(STORY, None, Limits(tokens=3000, seconds=0.5))
    assert caught.value.kind == "timeout" and caught.value.usage.requests == 1


def test_a_wrong_key_and_a_question_that_is_too_long(url: str) -> None:
    with pytest.raises(ModelError, match="refuses the key from CUDA_LSP_API_KEY"):
        model(url, "wrong-key-0123").ask(STORY, None, Limits(tokens=4))
    with pytest.raises(ModelError, match="longer context"):
        model(url).ask((Message("user", "word " * 9000),), None, Limits(tokens=4))


def test_a_search_survives_a_model_that_knows_nothing(url: str, tmp_path: Path) -> None:
    found = searched_with(model(url), tmp_path, Caps(requests=4, seconds=40.0), answer_tokens=256)
    assert found.outcome.reason in ("nothing applicable", "done")
    (used,) = found.of(events.ModelUsed)
    assert 1 <= used.requests <= 4 and used.received > 0
    ideas = [idea for event in found.of(events.IdeasFound) for idea in event.ideas]
    judged = found.of(events.CandidateJudged)
    assert len(found.of(events.IdeaDropped)) + len(judged) >= len(ideas)
    for proposal in found.outcome.proposals:
        assert proposal.verdict.correctness.state == "right"
    assert KEY not in found.trace


def test_the_catalogue_goes_on_beside_it(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CUDA_LSP_API_KEY", KEY)
    file = tmp_path / "scale.cu"
    file.write_text(TRANSPOSED)
    (tmp_path / ".cuda-lsp.toml").write_text(
        f'[model]\nname = "smollm2"\nendpoint = "{url}"\nideas = 1\nanswer-tokens = 256\nmax-requests = 2\n'
    )
    code, told = run_json("optimize", str(file), "--yes", "--rounds", "1", "--idea", "index-exchange")
    assert code == 0 and told["outcome"]["proposals"]
    (used,) = [event for event in told["events"] if event["type"] == "ModelUsed"]
    assert 1 <= used["requests"] <= 2
