"""Settings: the same workload in TOML, and faults that name file and key."""

from pathlib import Path

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.settings import Settings, SettingsError, read_settings

KERNEL = b"__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
GOOD = """
target = "H200"
architectures = ["sm_80", "sm_90"]
flags = ["--use_fast_math"]
include = ["include"]

[workload.k]
sizes = { n = 1024, m = "3 min 2" }
constants = { alpha = 0.5 }
buffers = { x = "f32[n * m] in uniform(0, 1)", y = "f32[n * m] out" }
plan = '''
repeat 2 { launch k<<<(n + 255) / 256, 256>>>(x, y, n)
           swap x y }
'''
compare = { y = "numeric 1e-5" }
flags = ["-DTILE=16"]
lossy = true
"""


def write(folder: Path, text: str) -> Path:
    (folder / ".cuda-lsp.toml").write_text(text)
    return folder


def test_everything_is_read(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, GOOD))
    assert settings.target == "H200" and settings.architectures == ("sm_80", "sm_90")
    assert settings.include == ((tmp_path / "include").resolve(),)
    assert settings.flags == ("--use_fast_math", f"-I{(tmp_path / 'include').resolve()}")
    document = parse(KERNEL)
    workload = settings.workload(document, document.kernel("k"))
    assert workload is not None
    assert [(s.name, s.value, s.minimum) for s in workload.sizes] == [("n", 1024, 1), ("m", 3, 2)]
    assert [str(b.extent) for b in workload.buffers] == ["n * m", "n * m"]
    assert workload.origin.kind == "settings" and workload.flags == ("-DTILE=16",) and workload.lossy
    assert len(workload.plan.launches()) == 1


def test_the_nearest_file_above_counts_and_none_is_no_settings(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert read_settings(inner) == Settings()
    write(tmp_path, 'target = "A100"')
    assert read_settings(inner).target == "A100"
    write(tmp_path / "a", 'target = "H100"')
    assert read_settings(inner).target == "H100"


def test_directive_before_settings_before_host_code(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, GOOD))
    document = parse(KERNEL)
    assert find_workload(document, document.kernel("k"), settings).origin.kind == "settings"
    assert find_workload(document, document.kernel("k"), tmp_path).origin.kind == "settings"
    stated = b"// cuda-lsp: workload\n// buffer x: f32[1] in\n// buffer y: f32[1] out\n// launch k<<<1, 1>>>(x, y, 0)\n"
    both = parse(stated + KERNEL)
    assert find_workload(both, both.kernel("k"), settings).origin.kind == "directive"
    with pytest.raises(NoWorkload, match="nothing in this file launches `k`"):
        find_workload(document, document.kernel("k"), Settings())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("target = ", "no valid TOML"),
        ("targets = 'H200'", "unknown key `targets`; did you mean `target`?"),
        ("zzz = 1", "unknown key `zzz`; known are target"),
        ("target = 3", "`target`: expected a card's name in quotes"),
        ("flags = '-DA'", "`flags`: expected a list of texts"),
        ("flags = ['-o', 'x']", "not `-o`"),
        ("workload = 3", "`workload`: expected a table"),
        ("[workload.k]\nbuffer = {}", "unknown key `workload.k.buffer`; did you mean `workload.k.buffers`?"),
        ("[workload.k]\nsizes = 3", "`workload.k.sizes`: expected a table of name = value"),
        ("[workload.k]\nlossy = 1", "`workload.k.lossy`: expected true or false"),
        ("[workload.k]\nplan = 1", "`workload.k.plan`: expected text"),
    ],
)
def test_faults_name_the_file_and_the_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(write(tmp_path, text))
    assert words in str(raised.value) and ".cuda-lsp.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[workload.k]\nsizes = { n = 0 }", "[workload.k]: size `n`"),
        ("[workload.k]\nbuffers = { x = 'f32' }", "expected `name: type[extent]"),
        ("[workload.k]\nsizes = { n = 1 }", "nothing is launched"),
        ("[workload.k]\nplan = 'launch k<<<1, 1>>>(1)'", "takes 3 arguments"),
    ],
)
def test_faults_of_a_stated_workload(tmp_path: Path, text: str, words: str) -> None:
    document = parse(KERNEL)
    with pytest.raises(SettingsError) as raised:
        find_workload(document, document.kernel("k"), write(tmp_path, text))
    assert words in str(raised.value)


def test_unreadable_bytes_are_told(tmp_path: Path) -> None:
    (tmp_path / ".cuda-lsp.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_workload_of_no_kernel_is_named(tmp_path: Path) -> None:
    text = (
        '[workload.sofmax]\nsizes = { n = 8 }\nbuffers = { x = "f32[n] out" }\nplan = "launch softmax<<<1, 8>>>(x)"\n'
    )
    document = parse(b"__global__ void softmax(float* x) { x[threadIdx.x] = 1; }\n")
    with pytest.raises(
        NoWorkload, match=r"has \[workload.sofmax\], which is no kernel of this file: is `softmax` meant"
    ):
        find_workload(document, document.kernel("softmax"), write(tmp_path, text))


def test_a_workload_of_a_kernel_elsewhere_is_passed_over(tmp_path: Path) -> None:
    text = '[workload.scan]\nsizes = { n = 8 }\nbuffers = { x = "f32[n] out" }\nplan = "launch scan<<<1, 8>>>(x)"\n'
    document = parse(b"__global__ void softmax(float* x) { x[threadIdx.x] = 1; }\n")
    with pytest.raises(NoWorkload) as raised:
        find_workload(document, document.kernel("softmax"), write(tmp_path, text))
    assert "scan" not in raised.value.message
