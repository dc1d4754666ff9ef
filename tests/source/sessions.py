"""Random editing as sequences of texts, and the check that each text is known as a parse from scratch knows it."""

import random
from collections.abc import Iterator, Sequence

from agent.source.document import Document, parse
from tests.source.same import differences

TYPED = [
    b"a", b"1", b";", b"\n", b"  ", b"x[0] = y + 1;", b"// note\n", b"/* note */", b"if (x) ", b"for (;;) {}", b"FOO\n",
    b"FOO(1)\n", b"CHECK(f(1))\n", b"k<<<1, 2>>>(x);", b"k<<<{1, 2}, 3>>>(x);", b"#pragma unroll\n", b"else ",
    b"namespace q {", b"__launch_bounds__(3) ", b"(", b")", b"{", b"}", b'"', b"'",
]  # fmt: skip
_LONGEST = 3000


def function(number: int) -> bytes:
    return b"__global__ void k%d(float* x, int n) {\n  int i = threadIdx.x;\n  x[i] += %d;\n}\n" % (number, number)


def anything(start: bytes, pieces: Sequence[bytes], dice: random.Random) -> Iterator[bytes]:
    """Anything typed anywhere, or taken away. Three texts in ten are ``start`` again, so that most are near a sound
    one, as they are in an editor."""
    text = start
    while True:
        text = text if len(text) < _LONGEST else start
        at, gone = int(dice.random() * len(text)), dice.choice((0, 0, 0, 1, 2, 9, 40))
        text = text[:at] + dice.choice(pieces) + text[at + gone :]
        if dice.random() < 0.3:
            text = start
        yield text


def keys(start: bytes, line: str, above: bytes, dice: random.Random) -> Iterator[bytes]:
    """``line`` typed key by key in front of some ``above`` of a text, and taken out again; then elsewhere."""
    places = [at for at in range(len(start)) if start.startswith(above, at)]
    while True:
        at = dice.choice(places)
        for length in (*range(1, len(line) + 1), *range(len(line) - 1, -1, -1)):
            yield start[:at] + line[:length].encode() + start[at:]


def known(document: Document, text: bytes) -> tuple[Document, str]:
    """The next state of ``document`` as an editor's server gets at it (in haste, and with care where haste does not
    tell all), and in what it differs from a parse from scratch."""
    found = parse(text, "", document, hasty=True)
    if found.hasty:
        found = parse(text, "", document)
    return found, differences(found, parse(text))
