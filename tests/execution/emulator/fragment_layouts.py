"""The fragment layouts of ``mma.sync`` as the PTX ISA's own conditions have them, shape by shape (9.7.14.5, "Matrix
fragments for mma"): for lane ``l`` and element ``i`` of A, B and C, the row and the column. Written down apart from the
emulator's one rule, to check it."""

from collections.abc import Callable

Place = Callable[[int, int, int], tuple[int, int]]


def _c(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


#: (shape, element): elements of A and where, elements of B and where, elements of C and where.
#: ``g`` is the lane's groupID (lane >> 2), ``t`` its threadID_in_group (lane % 4).
LAYOUTS: dict[tuple[str, int], tuple[tuple[int, Place], tuple[int, Place], tuple[int, Place]]] = {
    ("m16n8k8", 16): (
        (4, lambda g, t, i: (g if i in (0, 1) else g + 8, t * 2 + (i & 1))),
        (2, lambda g, t, i: (t * 2 + i, g)),
        (4, _c),
    ),
    ("m16n8k16", 16): (
        (8, lambda g, t, i: (g if 0 <= i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8))),
        (4, lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g)),
        (4, _c),
    ),
    ("m16n8k4", 32): (
        (2, lambda g, t, i: (g if i == 0 else g + 8, t)),
        (1, lambda g, t, i: (t, g)),
        (4, _c),
    ),
    ("m16n8k8", 32): (
        (4, lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4)),
        (2, lambda g, t, i: (t if i == 0 else t + 4, g)),
        (4, _c),
    ),
    ("m8n8k4", 64): (
        (1, lambda g, t, i: (g, t)),
        (1, lambda g, t, i: (t, g)),
        (2, lambda g, t, i: (g, t * 2 + (i & 1))),
    ),
    ("m16n8k4", 64): (
        (2, lambda g, t, i: (g if i == 0 else g + 8, t)),
        (1, lambda g, t, i: (t, g)),
        (4, _c),
    ),
    ("m16n8k8", 64): (
        (4, lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4)),
        (2, lambda g, t, i: (t if i == 0 else t + 4, g)),
        (4, _c),
    ),
    ("m16n8k16", 64): (
        (8, lambda g, t, i: (g if i % 2 == 0 else g + 8, (i * 2) - (i % 2) * 2 + t)),
        (4, lambda g, t, i: (t + 4 * i, g)),
        (4, _c),
    ),
    ("m8n8k16", 8): (
        (4, lambda g, t, i: (g, t * 4 + i)),
        (4, lambda g, t, i: (t * 4 + i, g)),
        (2, lambda g, t, i: (g, t * 2 + i)),
    ),
    ("m16n8k16", 8): (
        (8, lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3))),
        (4, lambda g, t, i: (t * 4 + i, g)),
        (4, _c),
    ),
    ("m16n8k32", 8): (
        (
            16,
            lambda g, t, i: (
                g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
                t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
            ),
        ),
        (8, lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g)),
        (4, _c),
    ),
    ("m8n8k32", 4): (
        (8, lambda g, t, i: (g, t * 8 + i)),
        (8, lambda g, t, i: (t * 8 + i, g)),
        (2, lambda g, t, i: (g, t * 2 + i)),
    ),
    ("m16n8k64", 4): (
        (
            32,
            lambda g, t, i: (
                g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
                t * 8 + (i & 7) if i < 16 else t * 8 + (i & 7) + 32,
            ),
        ),
        (16, lambda g, t, i: (t * 8 + (i & 7) if i < 8 else t * 8 + (i & 7) + 32, g)),
        (4, _c),
    ),
    ("m8n8k128", 1): (
        (32, lambda g, t, i: (g, t * 32 + i)),
        (32, lambda g, t, i: (t * 32 + i, g)),
        (2, lambda g, t, i: (g, t * 2 + i)),
    ),
    ("m16n8k256", 1): (
        (
            128,
            lambda g, t, i: (
                g if 0 <= i < 32 or 64 <= i < 96 else g + 8,
                t * 32 + (i & 31) if i < 64 else t * 32 + (i & 31) + 128,
            ),
        ),
        (64, lambda g, t, i: (t * 32 + (i & 31) if i < 32 else t * 32 + (i & 31) + 128, g)),
        (4, _c),
    ),
}
