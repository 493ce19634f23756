"""Any command output is survivable: bounded memory, exact counts, valid and harmless text (FLD-08)."""

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandboxd.execcore.capture import HeadTail
from sandboxd.execcore.shaping import shape_output, whole_characters
from sandboxd.execcore.spec import Captured, ExecState

from tests.unit.sandboxd.commands import run, shell

pytestmark = pytest.mark.req("FLD-08")


def shown(data: bytes) -> str:
    return shape_output(Captured(data, b"", len(data))).text


def test_bad_bytes_controls_and_escapes_become_visible(tmp_path: Path) -> None:
    outcome = run(shell(r"printf 'a\xf0\x9fb\x00\x1b[31mred'", tmp_path))
    assert shape_output(outcome.captured).text == "a�b\\x00\\x1b[31mred"
    assert outcome.captured.raw_bytes == 13


def test_line_feed_and_tab_stay_and_all_other_controls_are_shown() -> None:
    assert shown(b"a\tb\nc\rd\x7f") == "a\tb\nc\\x0dd\\x7f"
    assert shown("\x9b31m\x85".encode()) == "\\x9b31m\\x85"  # C1: an 8-bit CSI drives terminals too


def test_every_byte_value_gives_valid_text_without_controls() -> None:
    text = shown(bytes(range(256)))
    assert text.encode()
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_character_split_between_two_writes_is_whole(tmp_path: Path, cut: int) -> None:
    data = "🦉é漢".encode()
    halves = ["".join(f"\\x{byte:02x}" for byte in half) for half in (data[:cut], data[cut:])]
    outcome = run(shell(f"printf '{halves[0]}'; sleep 0.03; printf '{halves[1]}'", tmp_path))
    assert shape_output(outcome.captured).text == "🦉é漢"


@given(
    text=st.text(st.characters(min_codepoint=0xA0, exclude_categories=["Cs"]), min_size=40),
    head=st.integers(0, 30),
    tail=st.integers(0, 30),
)
def test_a_cut_splits_no_character_and_the_counts_are_exact(text: str, head: int, tail: int) -> None:
    kept = HeadTail(head, tail)
    data = text.encode()
    for byte in data:
        kept.feed(bytes([byte]))
    output = shape_output(kept.captured())
    assert output.head_bytes + output.tail_bytes + output.dropped_bytes == len(data)
    before, _, after = output.text.partition(f"… {output.dropped_bytes} bytes left out …\n")
    assert text.startswith(before.removesuffix("\n"))
    assert text.endswith(after)


@given(st.binary(max_size=400), st.integers(0, 50), st.integers(0, 50), st.integers(1, 60))
def test_head_and_tail_are_the_ends_of_the_stream(data: bytes, head: int, tail: int, step: int) -> None:
    kept = HeadTail(head, tail)
    for start in range(0, len(data), step):
        kept.feed(data[start : start + step])
    captured = kept.captured()
    assert captured.raw_bytes == len(data)
    assert data.startswith(captured.head)
    assert data.endswith(captured.tail)
    assert len(captured.head) == min(head, len(data))
    assert len(captured.tail) == min(tail, len(data) - len(captured.head))


def test_a_cut_at_a_boundary_never_gives_nothing() -> None:
    assert whole_characters("aé".encode()[:2]) == b"a"
    assert whole_characters("é".encode()[:1]) == b"\xc3"
    assert whole_characters(b"") == b""


def test_the_gap_is_told_in_a_line_of_its_own(tmp_path: Path) -> None:
    outcome = run(shell("seq 1 100000", tmp_path, head_bytes=10, tail_bytes=12))
    assert shape_output(outcome.captured).text == "1\n2\n3\n4\n5\n… 588873 bytes left out …\n9999\n100000\n"


def test_200_mib_of_zeros_need_little_memory_and_end_by_themselves(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = run(shell("head -c 209715200 /dev/zero; exit 5", tmp_path))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    output = shape_output(outcome.captured)
    assert (outcome.exit_code, outcome.reason) == (5, None)
    assert outcome.captured.raw_bytes == 209715200
    assert output.head_bytes + output.tail_bytes + output.dropped_bytes == 209715200
    assert output.text.startswith("\\x00\\x00")
    assert grown_kib < 64 * 1024


def test_one_line_of_50_mb_is_an_output_like_any_other(tmp_path: Path) -> None:
    outcome = run(shell("head -c 50000000 /dev/zero | tr '\\0' x; printf end", tmp_path))
    assert outcome.captured.raw_bytes == 50000003
    assert outcome.captured.tail.endswith(b"xend")


@pytest.mark.req("NOD-432")
def test_endless_output_ends_at_its_timeout(tmp_path: Path) -> None:
    outcome = run(shell("yes owl", tmp_path, start_to_end_s=1.0))
    assert outcome.state is ExecState.EXITED
    assert (outcome.reason, outcome.signal) == ("timeout", 15)
    assert outcome.captured.head.startswith(b"owl\nowl\n")


def test_stdout_and_stderr_keep_their_order(tmp_path: Path) -> None:
    outcome = run(shell("for i in 1 2 3; do echo o$i; echo e$i >&2; done", tmp_path))
    assert outcome.captured.head == b"o1\ne1\no2\ne2\no3\ne3\n"
