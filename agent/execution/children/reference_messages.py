"""What the process is told that runs a PyTorch reference, and what it answers."""

from attrs import field, frozen


@frozen
class Open:
    """Load ``name`` from the Python file ``path``. Answered by :class:`Opened`."""

    path: str
    name: str


@frozen
class Opened:
    """``problem`` is empty where it can be called; ``version`` is PyTorch's."""

    problem: str = ""
    version: str = ""


@frozen
class Tensor:
    """One buffer; ``dtype`` as NumPy names it, little endian, or ``bf16``."""

    name: str
    dtype: str
    data: bytes = field(repr=False)


@frozen
class Call:
    """Call it on ``tensors`` and ``numbers``, each by name; ``outputs`` (name, elements) are wanted as float64."""

    tensors: tuple[Tensor, ...]
    numbers: dict[str, int | float]
    outputs: tuple[tuple[str, int], ...]


@frozen
class Called:
    """``problem`` says what went wrong, in words for the user."""

    outputs: tuple[Tensor, ...] = ()
    problem: str = ""


@frozen
class Time:
    """Time it on the card on ``tensors`` of their own types: so many ``calls``, each after ``flush`` bytes were read,
    as it is or ``compiled``. Answered by :class:`Times`."""

    tensors: tuple[Tensor, ...]
    numbers: dict[str, int | float]
    compiled: bool
    calls: int
    flush: int


@frozen
class Times:
    """Seconds of each call; ``problem`` where there are none."""

    seconds: tuple[float, ...] = ()
    problem: str = ""
