# ruff: noqa: E501 (programs in a string are as long as they are)
"""Attacks by races and barriers: right by luck here, wrong on the card."""

from tests.attacks.entry import Attack

_ROUND = "        if (t < k) s[t] += s[t + k];\n        __syncthreads();\n    }\n    if (t == 0)"
_STORE = "if (t == 0) y[blockIdx.x] = s[0];"

ATTACKS = (
    Attack(
        "the barrier of a tree is left out",
        ("64",),
        "rowsum",
        ((_ROUND, _ROUND.replace("        __syncthreads();\n", "")),),
        "memory",
        "race",
    ),
    Attack(
        "the barrier before a tree is left out",
        ("64",),
        "rowsum",
        (("s[t] = sum;\n    __syncthreads();", "s[t] = sum;"),),
        "memory",
        "race",
    ),
    Attack(
        "a tree that ends without barriers inside a warp",
        ("64", "65"),
        "rowsum",
        (
            (
                _ROUND,
                "        if (t < k) s[t] += s[t + k];\n        if (k > 32) __syncthreads();\n    }\n    if (t == 0)",
            ),
        ),
        "memory",
        "race",
    ),
    Attack(
        "the value is read before the others have written theirs",
        ("64",),
        "softmax",
        (("    peak = s[0];\n    __syncthreads();", "    peak = s[0];"),),
        "memory",
        "race",
    ),
    Attack(
        "a sum without atomics",
        ("64",),
        "total",
        (("atomicAdd(sum, x[i]);", "sum[0] += x[i];"),),
        "correctness",
        "sum[0]",
    ),
    Attack(
        "a histogram without atomics",
        ("64",),
        "histogram",
        (("atomicAdd(&s[x[i]], 1u);", "s[x[i]]++;"),),
        "correctness",
        "h[",
    ),
    Attack(
        "a barrier that not all threads reach",
        ("64",),
        "rowsum",
        (
            (
                "    s[t] = sum;\n    __syncthreads();",
                "    s[t] = sum;\n    if (t < 64) { __syncthreads(); } else { __syncthreads(); }\n"
                "    if (t < cols) __syncthreads();",
            ),
        ),
        "memory",
        "divergent barrier",
    ),
    Attack(
        "blocks in place, neighbours read too late",
        ("64",),
        "blur",
        (
            (
                "y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;",
                "y[i] = x[i]; y[i] = 0.25f * left + 0.5f * y[i] + 0.25f * (i + 1 < n ? y[i + 1] * 0.0f + right : 0.0f);",
            ),
        ),
        "memory",
        "no order between",
    ),
    Attack(
        "the last block believes that the others have ended",
        ("64", "66"),
        "rowsum",
        (
            (
                _STORE,
                f"{_STORE} if (blockIdx.x == gridDim.x - 1 && t == 0 && gridDim.x > 1) "
                "y[0] = y[0] == 1.5e30f ? 0.0f : *(volatile float*)&y[0];",
            ),
        ),
        "memory",
        "no order between",
    ),
    Attack(
        "what was just written is loaded through the read-only cache",
        ("64",),
        "chain",
        (("if (i < n) y[i] = 2.0f * x[i] * x[i];", "if (i < n) { y[i] = x[i] * x[i]; y[i] = 2.0f * __ldg(y + i); }"),),
        "memory",
        "read-only",
    ),
    Attack(
        "endless",
        ("25",),
        "scale",
        (("if (i < n) y[i]", "while (n > 0 && i < 32) n |= 1; if (i < n) y[i]"),),
        "correctness",
        "step limit",
        card=(("undecided", "correctness", "did not end within"),),
    ),
)
