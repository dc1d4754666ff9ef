"""What keeps a search from following the user's style is said, in a terminal and in the server's log."""

from agent.search import events
from cuda_lsp.terminal.render import event_lines
from cuda_lsp.worker.advising import Heard

NOTE = events.Note("not formatted as .clang-format says: it failed")


def test_a_note_is_a_line() -> None:
    (line,) = event_lines(NOTE)
    assert line.split(maxsplit=1) == ["note", NOTE.text]


def test_the_server_keeps_it_for_the_log() -> None:
    told: list[object] = []
    heard = Heard(told.append, None)
    heard(NOTE)
    assert told == [NOTE] and [line.split(maxsplit=1)[1] for line in heard.lines] == [NOTE.text]
