"""The form of a proof record: all that it takes to repeat a verdict, and to argue with it. docs/record.md says more."""

from collections.abc import Mapping

from attrs import field, frozen

from agent.evaluation.ran import Ran
from agent.evaluation.verdict import Verdict
from agent.workload.plan import Plan
from agent.workload.workload import Workload

SCHEMA = 1
"""Grows when a field changes its meaning or goes away."""


@frozen
class Source:
    """``text`` is the device code that the plan's kernels need, local headers written out, host code left out; it
    compiles alone. ``file`` is the name of the file that it was cut out of, without its folder, and ``file_sha256`` the
    hash of that file as it was judged. ``whole``: no such part could be told, ``text`` is all of the file."""

    file: str
    text: str
    sha256: str
    file_sha256: str
    whole: bool = False


@frozen
class Settings:
    """What was asked for. ``depth`` is ``screen`` or ``full``; ``prepared`` is the depth at which the original was
    looked at (a search does that once, for its screens and its full verdicts). ``flags`` are the compiler flags without
    include folders, whose headers are part of the sources. ``special``: what NaN and infinity may do; ``lossy``: less
    precise rewrites were allowed; ``scope``: what the rewrite might change. ``seconds`` and ``step_cap`` as in
    :class:`agent.evaluation.setting.Setting`."""

    depth: str
    prepared: str
    target: str
    arch: str
    flags: tuple[str, ...]
    fmad: bool
    architectures: tuple[str, ...]
    special: str
    lossy: bool
    scope: str
    seconds: float
    step_cap: int


@frozen
class SizeRule:
    """The original takes multiples of ``multiple``, not below ``minimum``, as far as was tried."""

    multiple: int
    minimum: int


@frozen
class Contract:
    """What the original promises, as :class:`agent.evaluation.contracts.contract.Contract` has it. ``comparators``: how
    each output is compared. ``hazards``: (kind, whether it is benign) of what the original does too."""

    summary: str
    deterministic: bool
    unaligned: bool
    base: Mapping[str, int]
    tried: Mapping[str, Mapping[str, int]]
    rules: Mapping[str, SizeRule]
    comparators: Mapping[str, str]
    hazards: tuple[tuple[str, bool], ...]


@frozen
class Checker:
    """The test of the checker itself: mutants (``output: mutant``) that were caught, that equal the truth, and that
    this workload cannot tell; inputs that influence nothing; families that it took. ``oracle`` says what stood for the
    truth."""

    oracle: str
    killed: tuple[str, ...]
    not_applicable: tuple[str, ...]
    survived: tuple[str, ...]
    silent: tuple[str, ...]
    families: tuple[str, ...]


@frozen
class Card:
    """A card as it was measured, where something was timed: peaks in bytes a second (a copy counts both ways), the
    level-2 cache and what is read to empty it in bytes."""

    name: str
    uuid: str
    driver: str
    read: float
    write: float
    copy: float
    l2: int
    flush: int


@frozen
class Environment:
    """Where it ran. ``device`` is ``emulated`` or a card's name, ``machine`` what ``cuda-lsp doctor`` finds there by
    name (compilers, driver, CuPy), ``options`` the whole list that NVRTC got but for include folders. Clocks stand in
    ``verdict.evidence.timing``."""

    device: str
    system: str
    python: str
    numpy: str
    compiler: str
    options: tuple[str, ...]
    machine: Mapping[str, str]
    card: Card | None = None


@frozen
class Secrets:
    """The roots of all numbers that were drawn, 32 hexadecimal digits each: ``original`` for what was found out about
    the original, ``candidate`` for what was drawn once the candidate was fixed. They are told here because the verdict
    is there; nothing drawn from them is used again."""

    original: str
    candidate: str


@frozen
class Record:
    """One verdict. ``made`` is the time in UTC. ``workload`` holds sizes, buffers, generators and the original's plan,
    each value with its origin; ``plan`` is the candidate's. ``runs`` are those of the correctness gate. ``left_out``
    says what a replay lacks, or cannot repeat."""

    schema: int
    tool: str
    made: str
    kernel: str
    original: Source
    candidate: Source
    workload: Workload
    plan: Plan
    settings: Settings
    contract: Contract
    checker: Checker
    environment: Environment
    secrets: Secrets
    verdict: Verdict
    runs: tuple[Ran, ...]
    left_out: tuple[str, ...] = field(default=())
