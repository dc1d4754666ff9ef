"""What was recorded plays back the same."""

from pathlib import Path

import pytest

from agent.models.model import Limits, Message, ModelError, Reply, Usage
from agent.models.replay import Recording, Scripted, replay


def test_a_recording_plays_back(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    replies = [Reply("one", "stop", Usage(3, 4, 1)), Reply("no", "refusal", Usage(1, 2, 3, exact=False))]
    model = Recording(Scripted(iter(replies), name="tiny"), file)
    asked = [model.ask((Message("user", text),), None, Limits()) for text in ("a", "b")]
    played = replay(file)
    assert played.name == "tiny"
    assert [played.ask((), None, Limits()) for _ in range(2)] == asked == replies
    with pytest.raises(ModelError, match="no further answer"):
        played.ask((), None, Limits())


@pytest.mark.parametrize("text", ["{", "[]", '{"messages": []}', '{"reply": 3}', "\x00"])
def test_a_file_that_is_no_recording(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(text)
    with pytest.raises(ModelError, match="no recording"):
        replay(file)
    with pytest.raises(ModelError, match="no recording"):
        replay(tmp_path / "missing")
