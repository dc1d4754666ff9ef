"""Accepting: exactly the promised text, or nothing at all and the reason; with good editors and with bad ones."""

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types

from cuda_lsp.applying import Applied
from cuda_lsp.client import Client
from cuda_lsp.proposals.proposal import ACCEPTED, OUTDATED, READY, REJECTED, Proposal
from tests.server.desk import Desk
from tests.server.editor import FAILS, FORMATS, LAX, LIAR, REFUSES, SILENT, STRICT, TYPES
from tests.server.texts import SCALE

BODY = "void scale(const float* x, float* y, int n) {"
HEAD = "// Scales an array.\n__global__ " + BODY
PROMISED = SCALE.replace(HEAD, f"// helper 0\n{HEAD} /* faster 0 */")
RELAUNCHED = PROMISED.replace("scale<<<(n + 255) / 256, 256>>>", "scale<<<(n + 255) / 256, 128>>>")


def accepted(desk: Desk, proposal: Proposal) -> Applied:
    return asyncio.run(desk.proposals.accept(proposal.id))


@pytest.mark.parametrize("manner", [STRICT, LAX])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("versioned", [False, True])
def test_the_promised_text_and_nothing_else(tmp_path: Path, manner: str, late: bool, versioned: bool) -> None:
    desk = Desk(tmp_path, manner=manner, late=late, versioned=versioned)
    (proposal,) = desk.optimized()
    assert proposal.state == READY and proposal.proof
    assert accepted(desk, proposal) == Applied(True)
    assert desk.editor.text == PROMISED == desk.server_text
    assert desk.state(proposal) == ACCEPTED
    (asked,) = desk.editor.asked
    assert (asked.edit.document_changes is not None) == versioned


def test_launch_sites_change_with_the_kernel(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized(launches=True)
    assert accepted(desk, proposal).ok and desk.editor.text == RELAUNCHED


@pytest.mark.parametrize("launches", [False, True])
@pytest.mark.parametrize(
    "text",
    [SCALE.replace("\n", "\r\n"), SCALE.replace("\n", "\r"), SCALE.replace("array", "\U0001f600 \u2028 \x0c é"), SCALE],
)
def test_line_ends_and_characters_of_all_kinds(tmp_path: Path, text: str, launches: bool) -> None:
    desk = Desk(tmp_path, text)
    (proposal,) = desk.optimized(launches=launches)
    desk.editor.type(0, 0, "// \U0001f600 \u2029\r\n")
    assert accepted(desk, proposal).ok
    end = next(end for end in ("\r\n", "\r", "\n") if end in text)
    wanted = text.replace("// Scales", f"// helper 0{end}// Scales", 1).replace(BODY, f"{BODY} /* faster 0 */", 1)
    wanted = wanted.replace("/ 256, 256>>>", "/ 256, 128>>>", 1) if launches else wanted
    assert desk.editor.text == "// \U0001f600 \u2029\r\n" + wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#include <cuda_runtime.h>\n", "#include <cuda_runtime.h>\n#include <cstdio>\n\n"),
        ("x[i] + 1.0f", "x[i] + 2.0f"),
        ("return 0;", "printf(\"done\");\n    return 0;"),
        ("__global__ void shift", "// moved\n__global__ void shift"),
        ("// Scales an array.", "// Scales an array, twice."),
        ("// Scales an array.\n", "// Scales an array.\n// cuda-lsp: workload\n//   size n = 4096\n"),
    ],
)  # fmt: skip
def test_edits_elsewhere_move_it_along(tmp_path: Path, old: str, new: str) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized(launches=True)
    desk.editor.replace(old, new)
    assert desk.state(proposal) == READY
    assert accepted(desk, proposal).ok
    assert desk.editor.text == RELAUNCHED.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[i] = twice(x[i]);", "y[i] = twice(x[i]) ;"),
        ("scale<<<(n + 255) / 256, 256>>>", "scale<<<(n + 255) / 256, 512>>>"),
        ("void scale(const float* x", "void scaled(const float* x"),
    ],
)
def test_an_edit_inside_outdates_it_and_nothing_is_written(tmp_path: Path, old: str, new: str) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized(launches=True)
    desk.editor.replace(old, new)
    before = desk.editor.text
    assert desk.state(proposal) == OUTDATED
    answer = accepted(desk, proposal)
    assert not answer.ok and "outdated" in answer.message and "optimize it again" in answer.message
    assert desk.editor.text == before == desk.server_text and desk.editor.asked == []


def test_an_undo_brings_it_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    desk.editor.replace("twice(x[i])", "twice(x[j])")
    assert desk.state(proposal) == OUTDATED
    desk.editor.replace("twice(x[j])", "twice(x[i])")
    assert desk.state(proposal) == READY
    assert accepted(desk, proposal).ok
    desk.editor.replace("// helper 0\n", "")
    desk.editor.replace(" /* faster 0 */", "")
    assert desk.editor.text == SCALE and desk.state(proposal) == READY


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR 2.0f", "FACTOR 3.0f"),
        ("return FACTOR * v;", "return v;"),
        ("n = 4096", "n = 8192"),
        ("cudaMalloc(&y, n * sizeof(float))", "cudaMalloc(&y, 2 * n * sizeof(float))"),
    ],
)
def test_what_the_verdict_rests_on_is_more_than_the_kernel(tmp_path: Path, old: str, new: str) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    desk.editor.replace(old, new)
    before = desk.editor.text
    answer = accepted(desk, proposal)
    assert not answer.ok and "nothing was written" in answer.message
    assert desk.editor.text == before and desk.editor.asked == []
    assert desk.state(proposal) == OUTDATED, "it was looked at closely, and now it is known"
    desk.editor.replace(new, old)
    desk.proposals.check(desk.uri)
    assert desk.state(proposal) == READY


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        (REFUSES, "refused the change: the file is read-only; the document is as it was"),
        (LIAR, "said that it applied the change; the document is as it was"),
        (FAILS, "answered with an error: no such method; the document is as it was"),
        (SILENT, "did not answer within 0.3 s; the document is as it was"),
    ],
)
def test_an_editor_that_does_not_write(tmp_path: Path, manner: str, words: str) -> None:
    desk = Desk(tmp_path, manner=manner)
    (proposal,) = desk.optimized()
    answer = accepted(desk, proposal)
    assert not answer.ok and words in answer.message
    assert desk.editor.text == SCALE == desk.server_text
    assert desk.state(proposal) == READY, "it can be tried again"
    desk.editor.manner = STRICT
    assert accepted(desk, proposal).ok and desk.editor.text == PROMISED


def test_an_editor_that_writes_something_else(tmp_path: Path) -> None:
    desk = Desk(tmp_path, manner=FORMATS)
    (proposal,) = desk.optimized()
    answer = accepted(desk, proposal)
    assert not answer.ok and "changed to something else meanwhile" in answer.message
    assert desk.state(proposal) != ACCEPTED


def test_a_keystroke_before_the_edit_arrives(tmp_path: Path) -> None:
    desk = Desk(tmp_path, manner=TYPES)
    (proposal,) = desk.optimized()
    answer = accepted(desk, proposal)
    assert not answer.ok and "refused the change" in answer.message
    assert "try again" in answer.message and "undo" not in answer.message, "what changed is the user's own"
    assert desk.editor.text == "/" + SCALE == desk.server_text


def test_a_keystroke_before_an_edit_without_a_version_is_noticed_afterwards(tmp_path: Path) -> None:
    desk = Desk(tmp_path, manner=TYPES, versioned=False)
    (proposal,) = desk.optimized()
    answer = accepted(desk, proposal)
    assert not answer.ok and "look at it, and undo" in answer.message
    assert desk.editor.text == desk.server_text


def test_a_lax_editor_drops_an_old_edit_and_calls_it_applied(tmp_path: Path) -> None:
    desk = Desk(tmp_path, manner=LAX)
    (proposal,) = desk.optimized()
    plain = desk.editor.apply

    async def typing(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        desk.editor.type(0, 0, "//\n")
        return await plain(params)

    desk.proposals._applier._send = typing
    answer = accepted(desk, proposal)
    assert not answer.ok and "said that it applied the change, but the document was changed" in answer.message
    assert desk.editor.text == "//\n" + SCALE
    assert desk.state(proposal) == READY


def test_two_accepts_at_once_are_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    one, other = desk.optimized(count=2)

    async def both() -> list[Applied]:
        return list(await asyncio.gather(desk.proposals.accept(one.id), desk.proposals.accept(other.id)))

    first, second = asyncio.run(both())
    assert first.ok and not second.ok and "under way" in second.message
    assert desk.editor.text == PROMISED and len(desk.editor.asked) == 1
    assert desk.state(other) == OUTDATED


def test_a_document_that_is_closed_and_one_that_closes_meanwhile(tmp_path: Path) -> None:
    desk = Desk(tmp_path, manner=LIAR)
    (proposal,) = desk.optimized()
    plain = desk.editor.apply

    async def closing(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        desk.editor.close()
        return await plain(params)

    desk.proposals._applier._send = closing
    assert "the document was closed" in accepted(desk, proposal).message
    assert not accepted(desk, proposal).ok
    desk.editor.open()
    assert desk.state(proposal) == READY, "it was on disk"


def test_a_client_without_applyEdit(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (proposal,) = desk.optimized()
    desk.session.client = Client()
    assert "no workspace/applyEdit" in accepted(desk, proposal).message
    assert desk.editor.asked == []


def test_what_cannot_be_accepted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "no proposal nope" in accepted_id(desk, "nope").message
    (proposal,) = desk.optimized()
    assert desk.proposals.reject(proposal.id, "too clever").ok
    before = desk.editor.text
    assert accepted(desk, proposal).message == "this proposal is rejected: too clever"
    assert desk.editor.text == before == SCALE and desk.editor.asked == []
    assert desk.state(proposal) == REJECTED


def accepted_id(desk: Desk, identifier: str) -> Applied:
    return asyncio.run(desk.proposals.accept(identifier))
