# ruff: noqa: E501 (a row is a line)
"""The known ways in which generated kernels and their benchmarks cheated or misled, and what stands against each.

The second entry says why the design leaves no room for it, or what beside the attacks in ``tables`` answers it.
"""

_HOST = "host code of a rewrite never runs: only device code and a plan cross the border"
_APART = "expected values never enter a process that runs a rewrite"
_TIMED = "the timing gate: tests/evaluation/test_timing.py, tests/gpu/test_timing.py"
_CHECKER = (
    "the checker is tested before any rewrite: tests/evaluation/test_mutants.py, tests/evaluation/test_selftest.py"
)
_STATS = "intervals by bootstrap against the original's own: tests/evaluation/test_statistics.py"

CATALOGUE: dict[str, tuple[str, str]] = {
    "1": (
        "an output buffer that still holds somebody's answer",
        "outputs hold one of two byte patterns before each run",
    ),
    "2": ("inputs are changed", ""),
    "3": ("the output is an input", "buffers are allocated by the judge"),
    "4": ("the expected answer is found in the interpreter's memory", _HOST),
    "5": ("NaN as a wildcard", "NaN matches NaN alone"),
    "6": ("device memory is searched for answers", _APART),
    "7": ("answers handed over between processes", _APART),
    "8": (
        "globals shared with the reference",
        "original and rewrite are compiled apart; the workload is the original's",
    ),
    "9": ("uninitialised or too much shared memory", ""),
    "10": ("work on a side stream", _HOST),
    "11": ("work in a thread", _HOST),
    "12": ("an output that is computed when it is looked at", _HOST),
    "13": ("an output with its own comparison", _HOST),
    "14": ("patched timers", _HOST),
    "15": ("useless events", _HOST),
    "16": ("a timer patched in memory", _HOST),
    "17": (
        "replayed launches against plain ones",
        "both sides are launched in the same way by the same code; " + _TIMED,
    ),
    "18": ("several calls' work in one", "every timed call has contents of its own and is checked; " + _TIMED),
    "19": ("a slow warm-up", ""),
    "20": ("work left in flight", "events on the one stream there is, and the host's clock beside them; " + _TIMED),
    "21": ("patched statistics", _HOST),
    "22": ("a patched comparison", _HOST),
    "23": ("edited frames and modules", _HOST),
    "24": ("a report that the candidate prints", "nothing that a kernel prints is read"),
    "25": ("interposed pipes, endless runs", _HOST + "; a run that does not end is killed"),
    "26": ("secrets found in memory", "seeds stay in the judge's process"),
    "27": ("an error counter set back", "outputs leave the process before they are compared"),
    "28": (
        "guard bytes forged or written over",
        "in the emulator every access is checked, and every written byte is known",
    ),
    "29": (
        "the tolerance is edited",
        "the workload, tolerance included, is the original's",
    ),
    "30": ("global switches", _HOST),
    "31": ("an early end that reads as success", "right needs comparisons that were made"),
    "32": (
        "both fail, so both are equal",
        "an original that does not run is reported first: tests/evaluation/test_contract.py",
    ),
    "33": ("sniffing what kind of call this is", ""),
    "34": ("obfuscation", "what is judged is the compiled PTX"),
    "35": ("answers kept by pointer", ""),
    "36": ("answers kept by a fingerprint of the contents", ""),
    "37": ("answers kept in device variables", ""),
    "38": ("answers kept behind pointer arithmetic", ""),
    "39": ("a stale recorded launch", _HOST),
    "40a": ("weights prepared once", "a plan starts from poisoned scratch at every call, and its preparation is timed"),
    "40b": ("answers learnt by heart", "seeds are secret and drawn after the rewrite is fixed"),
    "41": ("sizes written into the code", ""),
    "42": (
        "one path for the test, another for the benchmark",
        "the declared size is judged too; sizes that only one of the two programs compares with are tried",
    ),
    "43": ("sniffing values", "values that only one of the two programs compares with are planted among the inputs"),
    "44": ("a guess at the distribution", ""),
    "45": ("a statistical shortcut", ""),
    "46": ("seeds that are known", "63 bits from the operating system: tests/evaluation/test_judge.py"),
    "47": ("only the first output is right", ""),
    "48": ("earlier answers lying about", "a rewrite is text and a plan: it opens no file"),
    "49": ("less precise arithmetic", ""),
    "50": ("a demanded step is skipped", ""),
    "51": (
        "a library in disguise",
        "device code has no host library; headers come from allowed folders: tests/execution/compiler",
    ),
    "52": ("a fallback to the reference", ""),
    "53": ("a branch that never runs", ""),
    "54": ("no work where the output is constant", ""),
    "55": (
        "work that cancels out",
        "a rewrite may use algebra: what counts is the output inside the workload's domain",
    ),
    "56": ("the tail is left out", ""),
    "57": (
        "large values are filtered from the comparison",
        "every lane that the original writes is compared; the part at odds with float64 is counted",
    ),
    "58": ("zeros below the tolerance", "errors are relative to the output's scale"),
    "59": (
        "a share of wrong elements is allowed",
        "no share is; 1 % of the lanes may follow either branch of a float comparison, and only near one of both answers",
    ),
    "60": ("either of two limits will do", "one limit, on the largest error and on the root mean square"),
    "61": ("a tolerance that is ignored", _CHECKER),
    "62": ("a tolerance for the wrong type", _CHECKER),
    "63": (
        "a reference less exact than the candidate",
        "float64, checked against the original: tests/evaluation/test_promotion.py",
    ),
    "64": ("a race that works by luck", ""),
    "65": (
        "a race detector that sees shared memory only",
        "the emulator's sees global memory too: tests/execution/emulator",
    ),
    "66": ("right on the first call only", "no state outlives a launch unless the original's does"),
    "67": ("no test at all", "a verdict without comparisons is undecided"),
    "68": ("only the last output is judged", "every run of every case is compared"),
    "69": ("an unstable formula that fits mild data", ""),
    "70": ("a constant cut off below the tolerance", "the budget is four times the original's own error"),
    "70a": (
        "parts pass, the whole breaks",
        "the verdict names the families, sizes and domain it holds for; the whole program is the user's to test",
    ),
    "71": ("data that is warm in the cache", _TIMED),
    "71a": ("a flush smaller than the cache", "the flush is calibrated on the card: tests/gpu/test_timing.py"),
    "72": ("lines that survive the flush", "persisting lines are reset before each timed call as well"),
    "73": ("the flush inside the window", _TIMED),
    "74": ("problems too small to time", _TIMED),
    "75": ("clocks that move", "alternating blocks, clocks watched: tests/evaluation/test_statistics.py"),
    "76": ("cold clocks", "blocks begin once the times have settled"),
    "77": ("two builds on two days", "both sides alternate in one process"),
    "78": ("noise called speed", _STATS),
    "79": (
        "the best of many",
        "what is shown is measured anew: the confirmation gate, tests/evaluation/test_timing.py",
    ),
    "80": ("a shared card", "a lock on the card, foreign use watched: tests/evaluation/test_cards.py"),
    "81": ("a slow baseline", "the baseline is the user's own kernel under its own flags"),
    "82": ("a baseline measured elsewhere", "original and rewrite are measured together"),
    "83": ("wrong peaks", "peaks are measured on the card: tests/gpu/test_timing.py"),
    "84": ("another size than is used", "the declared size, and up to four others beside it"),
    "85": ("time diluted by set-up", "only launches and the zeroing of scratch lie between the events"),
    "86": ("the old build is timed", "the record holds hashes of both programs"),
    "87": ("a speed without correctness", "no speed is shown of what is not right: tests/evaluation/test_judge.py"),
    "88": ("a missing time counted as 1.0", "what is missing stays missing: tests/evaluation/test_timing.py"),
    "89": (
        "another card than the user's",
        "the record names the card; every architecture of the project is compiled for",
    ),
    "90": ("text search refuses honest code", "no gate searches the source; the honest controls below"),
    "91": ("replay taken for memory", "state is what the PTX writes, not how it looks"),
    "92": ("honest work flagged", "the honest controls below, all of them accepted"),
    "93": ("copied inputs break what hangs on an address", "a kernel gets its buffers as arguments at each launch"),
    "94": ("a ban on streams", _HOST),
    "95": ("text search as a defence", "gates look at compiled code and at runs"),
}
