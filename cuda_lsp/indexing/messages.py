"""What the server and the process that holds the index say to each other: one answer to each message."""

from attrs import field, frozen

DEFINITION, REFERENCES, SYMBOLS, PREPARE, INCOMING, OUTGOING = (
    "definition", "references", "symbols", "prepare", "incoming", "outgoing"
)  # fmt: skip


@frozen
class Look:
    """Look through these folders (paths), in place of those before. ``avoid``: files that ended a process before."""

    folders: tuple[str, ...]
    avoid: tuple[str, ...] = ()


@frozen
class Work:
    """Go on with it for so many seconds, or for one file where that is nothing."""

    seconds: float


@frozen
class Progress:
    """``found`` files are known to be there, ``to_read`` of them had to be read anew, ``read`` of these are done.
    ``walked``: all folders were looked through; ``ended``: there is nothing to do. ``next`` is the file that is read
    next. ``left``: what was passed over since the last time, in words."""

    found: int
    to_read: int
    read: int
    walked: bool
    ended: bool
    next: str = ""
    left: tuple[str, ...] = ()


@frozen
class Text:
    """An open document: ``path`` is empty where it is no file."""

    uri: str
    path: str
    text: bytes = field(repr=False)


@frozen
class Place:
    """A function that was shown before, to be found again: the nearest to ``line`` of that name and kind."""

    key: str
    name: str
    kind: str
    line: int


@frozen
class Question:
    """``kind`` is one of those above. ``key`` is the document's path, or its URI where it has none; positions count in
    units of ``encoding``. ``texts`` are open documents that changed since the last question, ``gone`` the keys of those
    that were closed."""

    kind: str
    encoding: str
    key: str = ""
    line: int = 0
    character: int = 0
    declarations: bool = False
    query: str = ""
    place: Place | None = None
    texts: tuple[Text, ...] = ()
    gone: tuple[str, ...] = ()


@frozen
class Range:
    """Lines and columns, both from 0, in units of the question's encoding."""

    line: int
    character: int
    end_line: int
    end_character: int


@frozen
class Item:
    """Something at a place of a document. ``uri`` is set where that is open, as its client calls it. ``name`` and what
    follows only where it is a definition; ``ranges`` are those of the calls, in the caller's document."""

    key: str
    uri: str
    range: Range
    name: str = ""
    kind: str = ""
    qualified: str = ""
    head: str = ""
    extent: Range | None = None
    variable: bool = False
    ranges: tuple[Range, ...] = ()


@frozen
class Answer:
    items: tuple[Item, ...] = ()
