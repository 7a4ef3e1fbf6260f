"""A hub over real HTTP, which speaks the endpoints that huggingface_hub asks."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import pytest

from modelyard.artifacts.importing.hub import HubModel, parse_hub
from modelyard.artifacts.manifest import read_manifest
from modelyard.contract.errors import ArtifactError

COMMIT = "a1" * 20


class Hub(BaseHTTPRequestHandler):
    """One repository, org/tiny, at one commit that is called main."""

    folder: ClassVar[Path]
    asked: ClassVar[list[str]]
    url: ClassVar[str]

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        names = sorted(p.relative_to(self.folder).as_posix() for p in self._files())
        if path in (f"/api/models/org/tiny/revision/{one}" for one in ("main", COMMIT)):
            siblings = [{"rfilename": name} for name in names]
            self._json({"id": "org/tiny", "sha": COMMIT, "siblings": siblings})
        elif path == f"/api/models/org/tiny/tree/{COMMIT}":
            self._json([self._entry(name) for name in names])
        elif path.startswith(f"/org/tiny/resolve/{COMMIT}/"):
            self._file(path.removeprefix(f"/org/tiny/resolve/{COMMIT}/"))
        else:
            self._json({"error": "Not found"}, status=404, error="RepoNotFound")

    do_HEAD = do_GET

    def _files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def _entry(self, name: str) -> dict[str, object]:
        data = (self.folder / name).read_bytes()
        oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        return {"type": "file", "path": name, "size": len(data), "oid": oid}

    def _file(self, name: str) -> None:
        data = (self.folder / name).read_bytes()
        if self.command == "GET":
            self.asked.append(name)
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
        self._answer(200, data, headers)

    def _json(self, record: object, status: int = 200, error: str = "") -> None:
        headers = {"Content-Type": "application/json"} | ({"X-Error-Code": error} if error else {})
        self._answer(status, json.dumps(record).encode(), headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[type[Hub]]:
    (tmp_path / "repository").mkdir()

    class Served(Hub):
        folder = tmp_path / "repository"
        asked: ClassVar[list[str]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Served.url = f"http://127.0.0.1:{server.server_port}"
    yield Served
    server.shutdown()
    thread.join()
    server.server_close()


def bring(hub: type[Hub], home: Path, source: str, *options: str) -> tuple[int, str]:
    """`modelyard models import` in a process of its own: the library reads HF_ENDPOINT once."""
    main = "from modelyard.cli.main import main; main()"
    command = [sys.executable, "-c", main, "models", "import", source]
    command += ["--name", "m", "--version", "1", "--no-golden", *options]
    environment = os.environ | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "MODELYARD_HOME": str(home),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def test_only_what_is_served_is_fetched_and_the_commit_is_noted(
    hub: type[Hub], bert: Path, tmp_path: Path
) -> None:
    shutil.copytree(bert, hub.folder, dirs_exist_ok=True)
    for extra in ("pytorch_model.bin", "onnx/model.onnx", "modeling_x.py"):
        (hub.folder / extra).parent.mkdir(exist_ok=True)
        (hub.folder / extra).write_bytes(b"x" * 1000)
    code, output = bring(hub, tmp_path / "home", "org/tiny@main")
    assert code == 0, output
    folder = tmp_path / "home/models/m/1"
    assert read_manifest(folder).source == f"org/tiny@{COMMIT}"
    assert (folder / "model.safetensors").read_bytes() == (
        hub.folder / "model.safetensors"
    ).read_bytes()
    assert set(hub.asked) == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert len(hub.asked) == len(set(hub.asked))
    assert "left behind, serving does not need them: README.md, modeling_x.py, onnx" in output


def test_what_no_shell_runs_is_refused_before_its_weights_are_fetched(
    hub: type[Hub], bert: Path, tmp_path: Path
) -> None:
    shutil.copytree(bert, hub.folder, dirs_exist_ok=True)
    record = json.loads((bert / "config.json").read_text())
    config = json.dumps(record | {"model_type": "t5", "architectures": ["T5EncoderModel"]})
    (hub.folder / "config.json").write_text(config)
    code, output = bring(hub, tmp_path / "home", "org/tiny@main", "--kind", "embedder")
    assert code == 1
    assert "no embedder's shell runs T5EncoderModel" in output
    assert "model.safetensors" not in hub.asked


def test_a_model_and_a_revision_that_are_not_there(hub: type[Hub], tmp_path: Path) -> None:
    for source in ("org/other@main", "org/tiny@v9"):
        code, output = bring(hub, tmp_path / "home", source)
        assert code == 1
        assert f"{source}: the hub did not give it" in output
        assert "Traceback" not in output


def test_a_hub_that_does_not_answer(hub: type[Hub], tmp_path: Path) -> None:
    hub.url = "http://127.0.0.1:9"
    code, output = bring(hub, tmp_path / "home", "org/tiny@main")
    assert code == 1
    assert "org/tiny@main: the hub did not give it" in output
    assert "Traceback" not in output


def test_names_of_a_hub() -> None:
    assert parse_hub("org/name@v1.0") == HubModel("org/name", "v1.0")
    assert parse_hub("./a/b") is None
    assert parse_hub("name") is None
    with pytest.raises(ArtifactError, match="since a branch moves: org/name@<commit"):
        parse_hub("org/name")
