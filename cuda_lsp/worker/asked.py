"""What a worker is asked to do. Light to import: the server starts with it, long before it asks anything."""

from attrs import field, frozen


@frozen
class ModelUse:
    """A language model that the user allowed, with the key for it and where that came from."""

    name: str
    endpoint: str
    key: str = field(default="", repr=False)
    origin: str = ""


@frozen
class Written:
    """``text`` in the place of the bytes from ``start`` to ``end``."""

    start: int
    end: int
    text: str


@frozen
class Change:
    """A mechanical change of the text; ``title`` says what it does, as an order."""

    title: str
    edits: tuple[Written, ...]


@frozen
class Options:
    """What a job may do and spend. ``scope`` and ``only`` as in a search; ``against`` is ``saved`` or a git revision;
    ``folder`` is the document's workspace folder: where an unsaved one looks for the project's settings, and what paths
    in diffs are relative to. ``idea`` is one in words, the user's own or one that was ``suggested`` by the model;
    ``rejected`` holds (title, reason) of what the user turned down; ``model`` is one that may be asked, ``reference``
    the key of a function that may be run (:func:`cuda_lsp.asked_reference.key_of`). ``flags`` are the compiler's, of a
    command line; ``fresh``: nothing that was kept from before is taken. ``apply``: the best rewrite is put into the
    document without a question; ``change`` is what is to be proved of a mechanical fix; ``code`` is
    the form of a listing (``ptx``, ``sass``)."""

    scope: str = "relaunch"
    only: tuple[str, ...] = ()
    target: str = ""
    device: str = "auto"
    seconds: float = 300.0
    rounds: int = 3
    candidates: int = 36
    lossy: bool = False
    against: str = "saved"
    folder: str = ""
    idea: str = ""
    suggested: bool = False
    rejected: tuple[tuple[str, str], ...] = ()
    model: ModelUse | None = None
    reference: str = ""
    flags: tuple[str, ...] = ()
    fresh: bool = False
    apply: bool = False
    change: Change | None = None
    code: str = ""


@frozen
class Task:
    """One job. ``text`` is the document as the editor holds it; ``path`` is empty where it was never saved."""

    kind: str
    path: str
    text: bytes = field(repr=False)
    kernel: str
    options: Options
