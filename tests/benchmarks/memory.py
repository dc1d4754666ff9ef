"""Whether memory stays flat, and what is known of a text stays what a parse from scratch knows, over 200,000 edits in
this process and 20,000 through the language server.

Run ``python -m tests.benchmarks memory``; ``CUDA_LSP_EDITS`` is another number of edits, ``CUDA_LSP_SEED`` another.
In this process three documents take turns: a small one and a crowded one (namespaces, macros, templates, CRLF, bytes
that are no text), in which anything is typed anywhere and each text is compared with a parse from scratch, and one of
10,000 lines, in which lines are typed key by key and texts are compared now and then. The server gets such keys as fast
as it answers, with a pause now and then in which it compiles and reads with care.
"""

import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attrs import define

from agent.source.document import Document, parse
from tests.benchmarks.latency import CAPABILITIES
from tests.server.large_file import generated
from tests.server.observed import COMMAND, TREE
from tests.server.stdio_client import StdioClient, resident, started
from tests.source.same import differences
from tests.source.sessions import TYPED, anything, function, keys, known
from tests.source.strategies import PIECES

EDITS = int(os.environ.get("CUDA_LSP_EDITS", "200000"))
SHARE_OF_THE_SERVER = 10
TOLD = 20
TURN = 100
COMPARED = 1000
"""Every so many edits of the large document, which takes a second."""
LINE = "    float größe = x[row * cols + t] + 1.0f; // 🚀"
PAUSED = 20 * len(LINE)
"""The server gets a pause every so many keys: where ten lines were typed and taken away. From a pause within a line on,
each key at another place would have all between the two read again, until the next pause (docs/latency.md)."""
PLACE = b"    s[t] = sum;"
MIB = 1 << 20
SEED = int(os.environ.get("CUDA_LSP_SEED", "20240607"))


@define
class Tally:
    edits: int = 0
    compared: int = 0
    wrong: int = 0

    def count(self, wrong: str, text: bytes) -> None:
        self.compared += 1
        if wrong:
            self.wrong += 1
            print(f"  NOT EQUAL in {wrong}: {text[:3000]!r}", flush=True)


def main() -> None:
    print(f"seed {SEED}")
    tally = Tally()
    steps = _in_process(tally, random.Random(SEED))
    report("in this process", EDITS, steps, lambda: resident(os.getpid()))
    served = Tally()
    text = generated(0)
    with tempfile.TemporaryDirectory() as folder, started([*COMMAND], Path(folder)) as client:
        uri = (Path(folder) / "large.cu").as_uri()
        _open(client, uri, text)
        steps = _through_the_server(client, uri, text, served)
        report("through the server", EDITS // SHARE_OF_THE_SERVER, steps, client.resident)
    for name, found in (("in this process", tally), ("through the server", served)):
        print(f"{name}: {found.edits} edits, {found.compared} texts compared with a parse from scratch, "
              f"{found.wrong} differ")  # fmt: skip
    if tally.wrong or served.wrong:
        sys.exit("what is known of a text is not what a parse from scratch knows")


def report(name: str, total: int, steps: Iterable[object], memory: Callable[[], int]) -> None:
    """Take ``total`` steps, and print what memory is held after each part of them."""
    began, samples = time.monotonic(), [memory()]
    print(f"memory {name} over {total} edits: {samples[0] / MIB:.1f} MiB at the start", flush=True)
    taken = iter(steps)
    for told in range(TOLD):
        for _ in range(total * told // TOLD, total * (told + 1) // TOLD):
            next(taken)
        samples.append(memory())
        print(
            f"  {100 * (told + 1) // TOLD:3} % {samples[-1] / MIB:.1f} MiB, {time.monotonic() - began:.0f} s",
            flush=True,
        )
    early, late = samples[TOLD // 5], samples[-1]
    print(f"memory {name}: {early / MIB:.1f} MiB after 20 %, {late / MIB:.1f} at the end "
          f"({100 * (late - early) / early:+.1f} %), at most {max(samples) / MIB:.1f}")  # fmt: skip


# --- in this process -------------------------------------------------------------------------------------------------


def _in_process(tally: Tally, dice: random.Random) -> Iterator[None]:
    small = b"".join(map(function, range(6))) + b"void run(float* x) {\n  k1<<<1, 32>>>(x, 4);\n}\n"
    documents = [
        _compared(small, anything(small, TYPED, dice), tally),
        _compared(b"".join(PIECES[:13]), anything(b"".join(PIECES[:13]), [*PIECES, *TYPED], dice), tally),
        _typed(generated(0).encode(), dice, tally),
    ]
    for document in itertools.cycle(documents):
        yield from itertools.islice(document, TURN)


def _compared(start: bytes, texts: Iterable[bytes], tally: Tally) -> Iterator[None]:
    document = parse(start)
    for text in texts:
        document, wrong = known(document, text)
        tally.edits += 1
        tally.count(wrong, text)
        yield


def _typed(start: bytes, dice: random.Random, tally: Tally) -> Iterator[None]:
    """As the server does it: between two keys in haste, on top of the last text that was read with care."""
    document: Document = parse(start)
    for number, text in enumerate(keys(start, LINE, PLACE, dice), 1):
        hasty = parse(text, "", document, hasty=True)
        if not hasty.hasty:
            document = hasty
        tally.edits += 1
        if number % COMPARED == 0:
            tally.count(differences(parse(text, "", document), parse(text)), text)
        yield


# --- through the server ----------------------------------------------------------------------------------------------


def _open(client: StdioClient, uri: str, text: str) -> None:
    client.request("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
    client.note("initialized", {})
    document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}
    client.note("textDocument/didOpen", {"textDocument": document})
    client.diagnostics(uri, 1)
    client.quiet()


def _through_the_server(client: StdioClient, uri: str, text: str, tally: Tally) -> Iterator[None]:
    version = 1
    for change in _keys(text):
        version += 1
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
        client.note("textDocument/didChange", params)
        client.diagnostics(uri, version)
        tally.edits += 1
        if tally.edits % PAUSED == 0:
            client.quiet()
            tally.count(
                client.request("workspace/executeCommand", {"command": TREE, "arguments": [uri]})["result"], b""
            )
        yield


def _keys(text: str) -> Iterator[dict[str, object]]:
    """As :func:`keys`, as changes of the protocol in UTF-16; one place after the other."""
    places = [number for number, line in enumerate(text.split("\n")) if line == PLACE.decode()]
    for turn in itertools.count():
        line, column = places[turn * 7 % len(places)], 0
        for character in LINE:
            yield _change(line, column, column, character)
            column += _units(character)
        for character in reversed(LINE):
            column -= _units(character)
            yield _change(line, column, column + _units(character), "")


def _units(character: str) -> int:
    return 1 + (character > "\uffff")


def _change(line: int, start: int, end: int, text: str) -> dict[str, object]:
    return {
        "range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}},
        "text": text,
    }


if __name__ == "__main__":
    main()
