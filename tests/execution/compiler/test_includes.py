"""Every way to write an include that NVRTC would follow is seen before anything is compiled."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.compiler import includes
from agent.execution.compiler.includes import Refused, check, included, line_of, search, workspace


@pytest.mark.parametrize(
    "text",
    [
        '#include "x.h"',
        "#include <x.h>",
        '  #  include\t"x.h"',
        '#include"x.h"',
        '#include_next "x.h"',
        '%:include "x.h"',
        '#\\\ninclude "x.h"',
        '#inc\\\nlude "x.h"',
        '#inc\\\r\nlude "x.h"',
        '#/* a */include/* b */"x.h"',
        '/* a\n*/ #include "x.h"',
        '#/*\n*/include "x.h"',
        '#\finclude\v"x.h"',
        '#\rinclude "x.h"',
        'int a; /* // */\n#include "x.h"',
        'const char* s = R"(/*)";\n#include "x.h"\n/* */',
        'const char* s = "/*";\n#include "x.h"',
        'R"(\\\n)"\n#include "x.h"',
        '#if 0\n#include "x.h"\n#endif',
    ],
)
def test_an_include_is_seen(text: str) -> None:
    assert "x.h" in set(included(text))


@pytest.mark.parametrize(
    "text", ["#include X", "#include X(y)", "#define A\n# include /**/ MACRO // c", "#include X\n"]
)
def test_a_target_behind_a_macro_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="hidden behind a macro"):
        list(included(text))


@pytest.mark.parametrize(
    "text",
    [
        "// see #include guards",
        'printf("#include X");',
        "#define include 3",
        "#pragma unroll",
        "#included X",
        "int include = 1;",
        "x = a #include_path",
    ],
)
def test_what_is_no_include_is_left_alone(text: str) -> None:
    assert list(included(text)) == []


def test_the_macros_that_steer_thrusts_own_includes_stay() -> None:
    for text in (
        '#define __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(x) "/etc/passwd"',
        "#undef __THRUST_DEVICE_SYSTEM_MEMORY_HEADER",
        '#define THRUST_MR_STD_MR_HEADER "/etc/passwd"',
    ):
        with pytest.raises(Refused, match="stays"):
            list(included(text))
    assert list(included("#define THRUST_WRAPPED_NAMESPACE mine")) == []


@given(st.text(), st.sampled_from(["/* */", " ", "\t", "\f", "\r", "\\\n", "\\\r\n", "/*\n*/"]).map(str), st.text())
def test_no_text_before_hides_an_include(before: str, gap: str, after: str) -> None:
    names = set()
    try:
        names = set(included(f'{before}\n#{gap}include{gap}"secret.h"\n{after}'))
    except Refused:
        return
    assert "secret.h" in names


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace with a header, an include folder, a private file and a link that leads out; beside it a secret."""
    (tmp_path / "secret.h").write_text("TOKEN")
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "cuda_fp16.h").write_text("#include MACRO_OF_NVIDIAS")
    home = tmp_path / "project"
    (home / "src").mkdir(parents=True)
    (home / ".git").mkdir()
    (home / "inc" / "Eigen").mkdir(parents=True)
    (home / "inc" / "a.h").write_text('#include "b.h"\n')
    (home / "inc" / "b.h").write_text("#define B 1\n")
    (home / "inc" / "Eigen" / "Core").write_text("// no suffix\n")
    (home / "src" / "own.cuh").write_text("#pragma once\n")
    (home / "src" / ".env").write_text("KEY=1")
    (home / "src" / "notes.txt").write_text("dear diary")
    (home / "src" / "credentials").write_text("KEY=1")
    (home / "src" / "link.h").symlink_to(tmp_path / "secret.h")
    return home


def look(project: Path, text: str, *flagged: str, headers: tuple[tuple[str, str], ...] = ()) -> str:
    where = search(str(project / "src" / "k.cu"), flagged, (project.parent / "cuda",))
    return check(text, headers, where, project / "src")


@pytest.mark.parametrize("name", ["own.cuh", "cuda_fp16.h", "a.h", "Eigen/Core", "not_there.h", "../inc/b.h"])
def test_headers_in_their_places_are_allowed(project: Path, name: str) -> None:
    look(project, f'#include "{name}"', "../inc")


@pytest.mark.parametrize(
    "name", ["../../secret.h", ".env", "notes.txt", "credentials", "link.h", "/etc/passwd", "/not/there", "../src/.env"]
)
def test_other_files_are_refused(project: Path, name: str) -> None:
    with pytest.raises(Refused):
        look(project, f'#include "{name}"', "../inc")


def test_nested_headers_are_followed(project: Path) -> None:
    (project / "inc" / "b.h").write_text('#include "../../secret.h"\n')
    with pytest.raises(Refused, match=r"secret\.h"):
        look(project, '#include "a.h"', "../inc")


def test_what_was_reached_goes_into_the_hash(project: Path) -> None:
    first = look(project, '#include "a.h"', "../inc")
    assert look(project, '#include "a.h"', "../inc") == first
    (project / "inc" / "b.h").write_text("#define B 2\n")
    assert look(project, '#include "a.h"', "../inc") != first


def test_headers_that_include_each_other_end(project: Path) -> None:
    (project / "inc" / "b.h").write_text('#include "a.h"\n')
    look(project, '#include "a.h"', "../inc")


def test_folders_outside_the_workspace_need_the_users_word(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(project / "src" / "k.cu")
    outside = str(project.parent)
    assert search(path, [outside], ()).outside == (Path(outside).resolve(),)
    assert search(path, ["../inc"], ()).explicit == ((project / "inc").resolve(),)
    assert search(path, ["inc"], ()).explicit == ((project / "inc").resolve(),)  # relative to the root as well
    monkeypatch.setenv("CUDA_LSP_INCLUDE_PATH", outside)
    assert search(path, [outside], ()).explicit == (Path(outside).resolve(),)


def test_the_workspace_is_the_nearest_marked_folder(project: Path, tmp_path: Path) -> None:
    assert workspace(str(project / "src" / "k.cu")) == project
    assert workspace("/not/there/k.cu") is None
    assert workspace("") is None


def test_the_line_is_the_users_own() -> None:
    text = 'typedef int a;\n#line 40 "k.cu"\nint b;\n#include "secret"\n'
    assert line_of(text, "secret") == 41
    assert line_of("int a;\n#include X\n", "X") == 2
    assert line_of("int a;\n", "X") == 0


def test_host_code_may_use_system_headers_but_not_climb_out(project: Path) -> None:
    path = str(project / "src" / "k.cu")
    includes.check_host("#include <cstdio>\n#include <vector>\n", path, ())
    includes.check_host('#include "../inc/a.h"\n', path, ())
    for text in (
        '#include "../../secret.h"',
        '#include "/etc/passwd"',
        "#include <../../../../etc/passwd>",
        "#include X",
    ):
        with pytest.raises(Refused):
            includes.check_host(text, path, ())


LONG_COMMENTS = '/* one */ "s" /* two\n*/ x\n' * 20_000


@pytest.mark.parametrize(
    ("before", "found"),
    [
        (LONG_COMMENTS, ["a.h"]),
        ("\n" * 300_000, ["a.h"]),
        (" " * 300_000, ["a.h"]),
        ("#/*\n" * 20_000 + "*/\n", ["a.h"]),
        ("/* a */ " * 20_000, ["a.h"]),
        ("x /* a */ " * 20_000, ["a.h"]),
        ("x ", []),
    ],
)
def test_what_precedes_an_include_takes_no_longer_than_to_read_it(before: str, found: list[str]) -> None:
    """A pattern that tried every end of every comment took for ever on a file of 1,200 lines."""
    assert list(includes.included(f'{before}#include "a.h"\n')) == found


@pytest.mark.parametrize(
    "text",
    [
        "#/* a */include/* b\n*/ <x>",
        "/* a */ # include <x>",
        "a */ %:\tinclude <x>",
        "\r??= include <x>",
        "\f#include<x>",
    ],
)
def test_comments_and_blanks_may_stand_wherever_a_compiler_takes_them(text: str) -> None:
    assert list(includes.included(text)) == ["x"]
