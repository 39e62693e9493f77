"""What the start of a node says of images that cannot run as they stand."""

from pathlib import Path

import pytest

from tasuki.runtime.node import warn_of_images
from tasuki.values.config import Config, Image, Script


def said(caplog: pytest.LogCaptureFixture, image: Image) -> list[str]:
    caplog.clear()
    warn_of_images(Config(image.folder, images={image.name: image}))
    return [record.getMessage() for record in caplog.records]


def test_a_command_that_tasks_would_not_find_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (warning,) = said(caplog, Image("i", tmp_path, ("no-such-program", "x")))
    assert 'image "i": its command no-such-program is not found in PATH, which is /usr/local/sbin:' in warning
    assert "venv" in warning
    (relative,) = said(caplog, Image("i", tmp_path, ("./run.sh",)))
    assert f"there is no file {tmp_path / 'run.sh'}" in relative


def test_a_command_is_looked_for_as_tasks_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = tmp_path / "venv" / "bin" / "solve"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert said(caplog, Image("i", tmp_path, ("solve",), venv=tmp_path / "venv")) == []
    assert said(caplog, Image("i", tmp_path, ("solve",), environment={"PATH": str(program.parent)})) == []
    assert said(caplog, Image("i", tmp_path, ("venv/bin/solve",))) == []
    assert said(caplog, Image("i", tmp_path, ("sh",))) == []
    assert len(said(caplog, Image("i", tmp_path, ("solve",)))) == 1


def test_of_a_missing_folder_only_that_is_said_and_of_a_script_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (warning,) = said(caplog, Image("i", tmp_path / "gone", ("no-such-program",)))
    assert "does not exist" in warning
    assert said(caplog, Image("i", tmp_path, ("no-such-program",), scripted=Script())) == []
