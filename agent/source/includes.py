"""Which ``#include`` lines a device slice keeps, inlines or drops."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.items import Include
from agent.source.workspace import elsewhere

# Headers of the toolkit that NVRTC takes, each with the names that show that it is needed.
_DEVICE_HEADERS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(header), re.compile(names))
    for header, names in (
        (r"cuda_fp16\.hp?p?", r"half|__h|h(?:exp|log|sqrt|rsqrt|sin|cos|rcp|floor|ceil|trunc|rint|tanh|div)"),
        (
            r"cuda_bf16\.hp?p?",
            r"bfloat|nv_bf|__h|bf16|h(?:exp|log|sqrt|rsqrt|sin|cos|rcp|floor|ceil|trunc|rint|tanh|div)",
        ),
        (r"cuda_fp(?:4|6|8)\.hp?p?", r"_fp[468]|fp[468]_|__nv_cvt"),
        (
            r"cooperative_groups(?:/[\w/]+)?\.h",
            r"cooperative_groups|this_(?:thread_block|grid|cluster|thread)|tiled_partition|coalesced_threads|"
            r"(?:thread|grid|cluster|coalesced|multi_grid)_(?:block|group)",
        ),
        (r"mma\.h", r"wmma|nvcuda"),
        (r"cub/(?:block|warp|thread|util)\w*(?:/[\w/]+)?\.cuh", r"cub"),
        (r"cub/cub\.cuh", r"cub"),
        (r"cuda/(?:std/)?\w+(?:/[\w/]+)?", r"cuda|nvcuda"),
        (r"cuda_pipeline(?:_\w+)?\.h", r"__pipeline|pipeline|nvcuda"),
        (r"cuda_awbarrier(?:_\w+)?\.h", r"__mbarrier|awbarrier|nvcuda"),
        (r"curand(?:_\w+)?\.h", r"curand"),
        (r"math_constants\.h", r"CUDART_"),
        (r"cuComplex\.h", r"cu[A-Z]|make_cu"),
    )
)
_CUB_CLASS = re.compile(
    r"(Block|Warp)(AdjacentDifference|Discontinuity|Exchange|Histogram|Load|MergeSort|RadixRank|RadixSort|Reduce|"
    r"RunLengthDecode|Scan|Shuffle|Store)"
)
_HUMP = re.compile(r"[A-Z]")
# Headers of the host and of the toolkit that a device slice does without; any other one that is not found is missed.
_HOST = re.compile(
    r"[\w]+|c?(?:assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|malloc|math|memory|setjmp|signal|stdarg|"
    r"stdbool|stddef|stdint|stdio|stdlib|string|strings|time|unistd|getopt|pthread|omp|mpi|libgen|wchar|dirent|fcntl)\.h|"
    r"(?:sys|arpa|netinet|linux|bits|thrust|cub|crt|nvtx3|experimental|opencv2|torch|ATen|c10|boost|GL|pybind11)/.*|"
    r"(?:cuda|cu|nv|device|math|vector|texture|surface|driver|builtin|channel|library|sm)\w*\.h(?:pp)?|npp\w*\.h|windows\.h"
)
# CUDA's own: a copy of one in the workspace is of another version than the compiler.
_TOOLKIT = re.compile(
    r"(?:.*/)?(?:cuda(?:_\w+)?|(?:driver|vector|texture|surface|library|builtin|channel|host|device)_\w+|cu[Cc]omplex|"
    r"c(?:ublas|ufft|urand|usparse|usolver|udnn)\w*|math_\w+|sm_\d+_\w+|crtdefs|features|cooperative_groups|mma)\.hp?p?"
)
_LIMIT = 4 << 20


def kept_header(include: Include, words: frozenset[str]) -> tuple[str, ...] | None:
    """The toolkit headers to include for a line, none if none of it is used; None if it is no such header."""
    for header, names in _DEVICE_HEADERS:
        if header.fullmatch(include.name):
            needed = any(names.match(word) or (len(word) > 3 and names.search(word)) for word in words)
            if not needed:
                return ()
            return _used_cub(words) if include.name == "cub/cub.cuh" else (include.name,)
    return None


def is_missed(include: Include) -> bool:
    """True for a ``<header>`` that is neither the host's nor the toolkit's: its absence explains errors that follow."""
    return _HOST.fullmatch(include.name) is None


def _used_cub(words: frozenset[str]) -> tuple[str, ...]:
    """The block- and warp-wide headers in place of ``cub/cub.cuh``, which NVRTC refuses for its device-wide half."""
    found = (_CUB_CLASS.fullmatch(word) for word in sorted(words))
    return tuple(
        f"cub/{match.group(1).lower()}/{match.group(1).lower()}{_HUMP.sub(_lower, match.group(2))}.cuh"
        for match in found
        if match
    )


def _lower(match: re.Match[str]) -> str:
    return f"_{match.group().lower()}"


def workspace_of(path: str) -> Path:
    """The folder that local headers may come from: the nearest above ``path`` that a project marks, else its own."""
    folder = Path(path).resolve().parent
    for above in (folder, *folder.parents):
        if (above / ".git").exists() or (above / ".cuda-lsp.toml").exists():
            return above
    return folder


def local_header(include: Include, includer: Document, folders: Sequence[str]) -> Document | str:
    """The document of a local header, or why there is none.

    It is looked for beside the including file, in ``folders``, and then anywhere in the workspace: a build may have
    include folders that nobody names here. It is read only inside the workspace or these folders.
    """
    place = header_path(include.name, include.quoted, includer.path, folders)
    if isinstance(place, str):
        return place
    try:
        return _as_on_disk(place)
    except (SourceError, OSError) as error:
        return str(error)


def known(place: Path) -> Document | None:
    """A file of the workspace as it is on disk; None for one that cannot be read."""
    try:
        return _as_on_disk(place)
    except (SourceError, OSError):
        return None


def _as_on_disk(place: Path) -> Document:
    status = place.stat()
    return _read(str(place), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(place: str, _changed: int, _size: int) -> Document:
    """A header as it is on disk; headers are read again and again, by every kernel that is looked at."""
    return read(place)


def header_path(name: str, quoted: bool, includer: str, folders: Sequence[str]) -> Path | str:
    """Where a local header is that the file ``includer`` names, or why it is not read: see :func:`local_header`."""
    if not includer:
        return "the text has no file, so that there is no folder to look in"
    if Path(name).is_absolute():
        return "an absolute path is not followed"
    beside = [Path(includer).parent] if quoted else []
    allowed = [workspace_of(includer), *(Path(folder).resolve() for folder in folders)]
    for folder in (*beside, *map(Path, folders)):
        place = folder / name
        if not place.is_file():
            continue
        if not any(place.resolve().is_relative_to(root) for root in allowed):
            return f"{place} lies outside the workspace and the include folders"
        try:
            if place.stat().st_size > _LIMIT:
                return f"{place} is larger than {_LIMIT >> 20} MB"
        except OSError as error:
            return str(error)
        return place
    theirs = _TOOLKIT.fullmatch(name) is not None or (not quoted and _HOST.fullmatch(name) is not None)
    found = None if theirs else elsewhere(name, includer)
    return found or "not found beside the file, in the include folders or in the workspace"
