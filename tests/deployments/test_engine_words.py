"""The root cause of an engine's failed start is found in what its process wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.engine_words import EngineWords


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        (
            "(EngineCore pid=12) ERROR 11-30 16:00:00 [core.py:1510] ValueError: No available "
            "memory for the cache blocks\n",
            "ValueError: No available memory for the cache blocks",
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory.\n",
            "OutOfMemoryError: CUDA out of memory.",
        ),
        (
            "MemoryError: no room\nRuntimeError: Engine core initialization failed. See above.\n",
            "MemoryError: no room",
        ),
        ("all is well\n", None),
        ("", None),
    ],
)
def test_the_last_error_is_the_cause(written: str, cause: str | None, tmp_path: Path) -> None:
    stream = tmp_path / "worker.err"
    stream.write_text("ValueError: of an earlier life\n")
    words = EngineWords(stream)
    with stream.open("a") as file:
        file.write(written)
    assert words.last_error() == cause


def test_a_stream_that_is_no_file_says_nothing(tmp_path: Path) -> None:
    assert EngineWords(tmp_path / "missing").last_error() is None
    assert EngineWords(Path("/dev/null")).last_error() is None
