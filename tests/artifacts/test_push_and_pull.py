"""Versions into a store and out again: a folder, and a real S3 server."""

from __future__ import annotations

import errno
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from modelyard.artifacts import file_copy, s3_push
from modelyard.artifacts.file_lock import FileLock
from modelyard.artifacts.manifest import MANIFEST_BYTES, Manifest, read_manifest
from modelyard.artifacts.pull import Pulled, pull, verify_stored
from modelyard.artifacts.stores import Store, find_version, open_store, split_version
from modelyard.artifacts.verify import verify
from modelyard.cli import models
from modelyard.contract.errors import ArtifactError, ConfigError
from modelyard.testing.tiny_model import write_tiny_model
from tests.artifacts.conftest import S3World, add_file
from tests.artifacts.fault_proxy import Fault

MIB = 1 << 20


def quiet(done: int, total: int) -> None: ...


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "file":
        return open_store((tmp_path / "store").as_uri())
    s3: S3World = request.getfixturevalue("s3")
    return open_store(s3.uri, patience=s3.patience)


@pytest.fixture
def s3_store(s3: S3World) -> Store:
    return open_store(s3.uri, patience=s3.patience)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path / "made")
    return tmp_path / "made"


def other_bytes(folder: Path) -> Manifest:
    (folder / "README.md").write_text("other")
    return add_file(folder, read_manifest(folder), 10)


def test_what_is_pushed_is_found_listed_and_pulled_byte_for_byte(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    pushed = store.push(folder, quiet)
    assert pushed.made
    assert pushed.uri == f"{store.uri}/tiny/1.0.0"
    assert (store.names(), store.versions("tiny")) == (["tiny"], ["1.0.0"])
    stored = find_version(pushed.uri)
    assert stored.manifest == pushed.manifest
    target = tmp_path / "pulled" / "here"
    assert pull(stored, target, quiet) is Pulled.FETCHED
    verify(target, pushed.manifest)
    assert (target / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()
    assert [path.name for path in target.parent.iterdir()] == ["here"]
    assert pull(stored, target, quiet) is Pulled.PRESENT


def test_the_same_bytes_again_are_no_work(store: Store, folder: Path) -> None:
    store.push(folder, quiet)
    assert store.push(folder, quiet).made is False


def test_other_bytes_under_a_version_are_refused_naming_both_digests(
    store: Store, folder: Path
) -> None:
    first = store.push(folder, quiet).manifest
    second = other_bytes(folder)
    with pytest.raises(
        ArtifactError, match=f"digest {first.digest()}, the folder's is {second.digest()}"
    ):
        store.push(folder, quiet)
    assert store.find("tiny", "1.0.0").manifest == first


@pytest.mark.parametrize("change", ["same size", "longer", "shorter", "gone"])
def test_a_file_that_changed_since_packaging_is_refused_and_nothing_is_published(
    store: Store, folder: Path, change: str
) -> None:
    path = folder / "tokenizer.json"
    text = path.read_bytes()
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {"same size": text[::-1], "longer": text + b" ", "shorter": text[:-1]}[change]
        )
    with pytest.raises(ArtifactError, match=r"tokenizer.json: "):
        store.push(folder, quiet)
    assert store.versions("tiny") == []


def test_a_file_that_changes_during_the_push_is_refused(s3_store: Store, folder: Path) -> None:
    add_file(folder, read_manifest(folder), 20 * MIB)
    progressed: list[int] = []

    def change_later_bytes(done: int, total: int) -> None:
        if not progressed:
            with (folder / "extra.dat").open("r+b") as stream:
                stream.seek(19 * MIB)
                stream.write(bytes(64))
        progressed.append(done)

    with pytest.raises(ArtifactError, match=r"extra.dat: expected sha256 .* has changed since"):
        s3_store.push(folder, change_later_bytes)
    assert s3_store.versions("tiny") == []


def test_a_large_file_is_sent_in_parts_and_counted(
    s3: S3World, s3_store: Store, folder: Path
) -> None:
    manifest = add_file(folder, read_manifest(folder), 20 * MIB)
    told: list[tuple[int, int]] = []
    s3_store.push(folder, lambda done, total: told.append((done, total)))
    assert (manifest.size_bytes, manifest.size_bytes) in told
    parts = [each for each in s3.proxy.asked if each.method == "PUT" and "extra" in each.path]
    assert len(parts) == 3
    verify_stored(s3_store.find("tiny", "1.0.0"), quiet)


def test_the_manifest_is_written_last(s3: S3World, s3_store: Store, folder: Path) -> None:
    s3_store.push(folder, quiet)
    written = [each.path for each in s3.proxy.asked if each.method == "PUT"]
    assert unquote(written[0]).endswith(f"/{s3_push.CLAIM_NAME}")
    assert written[-1].endswith("manifest.json")


def test_a_push_that_broke_off_is_invisible_and_the_next_sends_only_the_rest(
    s3: S3World, s3_store: Store, folder: Path
) -> None:
    manifest = read_manifest(folder)
    refused = Fault("status", "tokenizer.json", 99, "PUT", status=403, code="AccessDenied")
    s3.proxy.faults.append(refused)
    with pytest.raises(ArtifactError, match="403 AccessDenied: the credentials"):
        s3_store.push(folder, quiet)
    assert (s3_store.names(), s3_store.versions("tiny")) == ([], [])
    s3.proxy.faults.clear()
    s3.proxy.asked.clear()
    assert s3_store.push(folder, quiet).made
    sent = [each.path for each in s3.proxy.asked if each.method == "PUT"]
    assert manifest.files[0].path == "config.json"
    assert not any(path.endswith("/config.json") for path in sent)
    verify_stored(s3_store.find("tiny", "1.0.0"), quiet)


def test_a_push_of_other_bytes_while_one_is_under_way_is_refused(
    s3: S3World, s3_store: Store, folder: Path, tmp_path: Path
) -> None:
    s3.proxy.faults.append(Fault("status", "tokenizer.json", 99, "PUT", 403, "AccessDenied"))
    with pytest.raises(ArtifactError, match="AccessDenied"):
        s3_store.push(folder, quiet)
    first = read_manifest(folder).digest()
    other_bytes(folder)
    with pytest.raises(ArtifactError, match=rf"push of the manifest digest {first} is under way"):
        s3_store.push(folder, quiet)


def test_503s_during_a_push_are_waited_out(s3: S3World, s3_store: Store, folder: Path) -> None:
    s3.proxy.faults += [
        Fault("status", "model.safetensors", 1, "PUT"),
        Fault("status", "manifest.json", 1, "PUT"),
    ]
    assert s3_store.push(folder, quiet).made


@pytest.mark.parametrize("same", [True, False])
def test_of_pushes_at_once_one_content_wins(
    store: Store, folder: Path, tmp_path: Path, same: bool
) -> None:
    second = tmp_path / "second"
    write_tiny_model(second)
    if not same:
        other_bytes(second)
    outcomes: list[object] = []
    barrier = threading.Barrier(2)

    def push(which: Path) -> None:
        barrier.wait()
        try:
            outcomes.append(store.push(which, quiet).manifest)
        except ArtifactError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=push, args=(each,)) for each in (folder, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = store.find("tiny", "1.0.0")
    verify_stored(stored, quiet)
    assert [stored.manifest == each for each in outcomes].count(True) == (2 if same else 1)


def test_a_broken_off_pull_is_resumed_and_never_half_there(
    s3: S3World, s3_store: Store, tmp_path: Path
) -> None:
    manifest = s3.pushed(extra_bytes=4 * MIB)
    s3.proxy.faults += [Fault("truncate", "extra.dat"), Fault("status", "extra.dat", 4)]
    stored, target = s3_store.find("tiny", "1.0.0"), tmp_path / "out"
    with pytest.raises(ArtifactError, match="nothing arrived in 4 attempts"):
        pull(stored, target, quiet, s3.patience)
    assert not target.exists()
    assert pull(stored, target, quiet, s3.patience) is Pulled.FETCHED
    verify(target, manifest)


def test_a_pull_over_another_version_is_refused(store: Store, folder: Path, tmp_path: Path) -> None:
    store.push(folder, quiet)
    other = tmp_path / "other"
    write_tiny_model(other, version="2.0.0")
    with pytest.raises(ArtifactError, match="name another folder"):
        pull(store.find("tiny", "1.0.0"), other, quiet)


def test_verify_tells_a_byte_changed_in_the_store(
    s3: S3World, s3_store: Store, folder: Path
) -> None:
    manifest = s3_store.push(folder, quiet).manifest
    key = s3.key(manifest, "model.safetensors")
    data = bytearray(s3.client.get_object(Bucket=s3.bucket, Key=key)["Body"].read())
    data[-1] ^= 1
    s3.client.put_object(Bucket=s3.bucket, Key=key, Body=bytes(data))
    with pytest.raises(ArtifactError, match=r"model.safetensors: expected sha256"):
        verify_stored(s3_store.find("tiny", "1.0.0"), quiet)


def test_a_manifest_under_another_name_is_refused(s3: S3World, s3_store: Store) -> None:
    manifest = s3.pushed()
    body = s3.client.get_object(Bucket=s3.bucket, Key=s3.key(manifest, "manifest.json"))["Body"]
    s3.client.put_object(Bucket=s3.bucket, Key="models/other/1.0.0/manifest.json", Body=body.read())
    with pytest.raises(
        ArtifactError, match=r"expected the manifest of other@1.0.0, got tiny@1.0.0"
    ):
        s3_store.find("other", "1.0.0")


def test_a_store_at_the_root_of_a_bucket(s3: S3World, folder: Path) -> None:
    store = open_store(f"s3://{s3.bucket}/", patience=s3.patience)
    store.push(folder, quiet)
    assert store.names() == ["tiny"]
    assert find_version(f"s3://{s3.bucket}/tiny/1.0.0").manifest == read_manifest(folder)


def test_hidden_and_broken_folders_are_no_versions(tmp_path: Path, folder: Path) -> None:
    store = open_store((tmp_path / "store").as_uri())
    store.push(folder, quiet)
    (tmp_path / "store/tiny/.pushing-1").mkdir()
    (tmp_path / "store/tiny/2.0.0").mkdir()
    (tmp_path / "store/empty").mkdir()
    assert (store.names(), store.versions("tiny")) == (["tiny"], ["1.0.0"])


def test_an_address_is_taken_apart() -> None:
    assert split_version("s3://b/models/tiny/1.0.0/") == ("s3://b/models", "tiny", "1.0.0")
    assert split_version("s3://b/tiny/1.0.0") == ("s3://b", "tiny", "1.0.0")


@pytest.mark.parametrize("uri", ["s3://tiny/1.0.0", "", "tiny", "s3://"])
def test_an_address_without_its_parts_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="NAME/VERSION"):
        split_version(uri)


def test_the_commands_work_on_a_bucket(
    s3: S3World, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path / "home"))
    digest = read_manifest(folder).digest()
    address = f"{s3.uri}/tiny/1.0.0"
    assert command("push", str(folder), s3.uri) == (0, f"pushed  {address}  {digest}\n")
    assert command("push", str(folder), s3.uri) == (0, f"present  {address}  {digest}\n")
    code, listed = command("list", "--store", s3.uri)
    assert (code, listed.split()) == (
        0,
        ["tiny@1.0.0", "embedder", *listed.split()[2:4], digest[:8]],
    )
    assert command("show", address)[1].splitlines()[1] == f"digest     {digest}"
    assert command("show", "tiny", "--store", s3.uri)[0] == 0
    assert command("verify", address)[1].startswith("verified  tiny@1.0.0")
    target = tmp_path / "home/models/tiny/1.0.0"
    assert command("pull", address) == (0, f"pulled  {target}  {digest}\n")
    s3.proxy.faults.append(Fault("status", "", 99, status=403, code="AccessDenied"))
    code, said = command("pull", address, str(tmp_path / "b"))
    assert code == 1
    assert "403 AccessDenied: the credentials are missing, expired or may not do this" in said
    assert len(said.splitlines()) == 1


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(models.app, list(arguments))
    return result.exit_code, result.output


def test_what_killed_pushes_left_goes_with_the_next(tmp_path: Path, folder: Path) -> None:
    left = tmp_path / "store/tiny/.pushing-0123"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert open_store((tmp_path / "store").as_uri()).push(folder, quiet).made
    assert sorted(path.name for path in left.parent.iterdir()) == [".lock", "1.0.0"]


def test_a_push_to_a_disk_that_is_too_small_is_refused_before_its_first_byte(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    monkeypatch.setattr(file_copy, "_copy", None)
    said = r"1.0.0: needs 0.\d MB more, .* has 0.0 MB free: make room there, or push to a store on"
    with pytest.raises(ArtifactError, match=said):
        open_store((tmp_path / "store").as_uri()).push(folder, quiet)


def test_a_disk_that_fills_up_during_a_push_is_told_and_given_back(
    tmp_path: Path, folder: Path
) -> None:
    def full(done: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    said = r"became full \(No space left on device\), .* make room there, or push to a store on"
    with pytest.raises(ArtifactError, match=said):
        open_store((tmp_path / "store").as_uri()).push(folder, full)
    assert [path.name for path in (tmp_path / "store/tiny").iterdir()] == [".lock"]


def test_a_push_waits_for_who_makes_a_version_of_the_model_and_says_so(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = FileLock(tmp_path / "store/tiny/.lock")
    assert lock.try_take()
    store = open_store((tmp_path / "store").as_uri())
    with released_once_told(lock, caplog, "another command writes there"):
        assert store.push(folder, quiet).made


def test_a_pull_waits_for_another_of_the_same_folder_and_says_so(
    store: Store, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.push(folder, quiet)
    target = tmp_path / "out/here"
    path = target.parent / ".here.pulling"
    lock = FileLock(path)
    assert lock.try_take()
    with released_once_told(lock, caplog, "another command pulls it", path):
        assert pull(store.find("tiny", "1.0.0"), target, quiet) is Pulled.FETCHED
    assert [each.name for each in target.parent.iterdir()] == ["here"]


@contextmanager
def released_once_told(
    lock: FileLock, caplog: pytest.LogCaptureFixture, words: str, path: Path | None = None
) -> Iterator[None]:
    """Another process that has the lock until the body has said that it waits; removes `path`."""

    def release() -> None:
        while words not in caplog.text:
            time.sleep(0.01)
        if path is not None:
            path.unlink()
        lock.release()

    thread = threading.Thread(target=release)
    thread.start()
    yield
    thread.join()


def test_an_import_that_was_first_is_found_by_a_pull(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    store.push(folder, quiet)
    target = tmp_path / "out/here"

    def import_meanwhile(done: int, total: int) -> None:
        if not target.exists():
            shutil.copytree(folder, target)

    assert pull(store.find("tiny", "1.0.0"), target, import_meanwhile) is Pulled.PRESENT
    assert [path.name for path in target.parent.iterdir()] == ["here"]


def test_a_pull_that_fills_the_disk_speaks_of_its_folder_and_not_of_the_cache(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    store.push(folder, quiet)

    def full(done: int, total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ArtifactError, match="make room there, or name a folder on another disk"):
        pull(store.find("tiny", "1.0.0"), tmp_path / "out/here", full)


@pytest.mark.parametrize("conflicts", [1, 99])
def test_a_push_does_not_go_on_without_a_claim(
    s3: S3World,
    s3_store: Store,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    conflicts: int,
) -> None:
    monkeypatch.setattr(s3_push, "_CLAIM_PAUSE_S", 0.0)
    conflict = "ConditionalRequestConflict"
    s3.proxy.faults.append(Fault("status", "pushing", conflicts, "PUT", 409, conflict))
    if conflicts == 1:
        assert s3_store.push(folder, quiet).made
    else:
        with pytest.raises(ArtifactError, match=r"@pushing could not be written.*then push again"):
            s3_store.push(folder, quiet)
    sent = [unquote(each.path) for each in s3.proxy.asked if each.method == "PUT"]
    claims = [path for path in sent if path.endswith(s3_push.CLAIM_NAME)]
    assert len(claims) == (2 if conflicts == 1 else s3_push._CLAIM_ATTEMPTS)
    assert sent[: len(claims)] == claims
    assert (sent == claims) == (conflicts > 1)


def test_a_push_that_ends_in_503s_says_what_to_do(
    s3: S3World, s3_store: Store, folder: Path
) -> None:
    s3.proxy.faults.append(Fault("status", "tokenizer.json", 99, "PUT"))
    with pytest.raises(ArtifactError, match=r"503 SlowDown.*check the store.*then push again"):
        s3_store.push(folder, quiet)


def test_a_manifest_in_a_bucket_that_is_too_large_is_not_read(
    s3: S3World, s3_store: Store, folder: Path
) -> None:
    body = b" " * (MANIFEST_BYTES + 1)
    key = s3.key(read_manifest(folder), "manifest.json")
    s3.client.put_object(Bucket=s3.bucket, Key=key, Body=body)
    said = r"manifest\.json: expected at most 4194304 bytes"
    with pytest.raises(ArtifactError, match=said):
        s3_store.find("tiny", "1.0.0")
    with pytest.raises(ArtifactError, match=said):
        s3_store.push(folder, quiet)


@pytest.mark.parametrize("uri", ["s3://[", "s3://[/tiny/1.0.0", "file:///a%00b/x/1"])
def test_the_commands_refuse_an_address_that_is_none_in_one_sentence(
    folder: Path, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path / "home"))
    for arguments in (("push", str(folder), uri), ("verify", uri), ("show", uri), ("pull", uri)):
        code, said = command(*arguments)
        assert (code, len(said.splitlines())) == (1, 1)
        assert "write " in said


DAMAGES = ("a changed byte", "cut short", "gone")


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            data[: len(data) // 2] if how == "cut short" else data[:-1] + bytes([data[-1] ^ 1])
        )


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_folder_is_refused_though_its_version_is_there(
    store: Store, folder: Path, how: str
) -> None:
    store.push(folder, quiet)
    damage(folder / "model.safetensors", how)
    with pytest.raises(ArtifactError, match=r"made/model\.safetensors: expected"):
        store.push(folder, quiet)
    verify_stored(store.find("tiny", "1.0.0"), quiet)


def damage_stored(
    store: Store, request: pytest.FixtureRequest, manifest: Manifest, how: str
) -> None:
    if store.uri.startswith("file:"):
        folder = Path(store.uri.removeprefix("file://")) / manifest.name / manifest.version
        damage(folder / "model.safetensors", how)
        return
    s3: S3World = request.getfixturevalue("s3")
    key = s3.key(manifest, "model.safetensors")
    local = s3.folder / "object"
    local.write_bytes(s3.client.get_object(Bucket=s3.bucket, Key=key)["Body"].read())
    damage(local, how)
    if how == "gone":
        s3.client.delete_object(Bucket=s3.bucket, Key=key)
    else:
        s3.client.put_object(Bucket=s3.bucket, Key=key, Body=local.read_bytes())


@pytest.mark.parametrize(
    ("how", "repair"),
    [("cut short", False), ("gone", False), *((how, True) for how in DAMAGES)],
)
def test_a_push_over_a_damaged_file_in_the_store_sends_that_again(
    store: Store, folder: Path, request: pytest.FixtureRequest, how: str, repair: bool
) -> None:
    manifest = store.push(folder, quiet).manifest
    damage_stored(store, request, manifest, how)
    pushed = store.push(folder, quiet, repair=repair)
    assert (pushed.made, pushed.sent_again) == (False, ("model.safetensors",))
    verify_stored(store.find("tiny", "1.0.0"), quiet)
    assert store.push(folder, quiet, repair=True).sent_again == ()


def test_without_repair_a_push_reads_no_stored_byte(
    store: Store, folder: Path, request: pytest.FixtureRequest
) -> None:
    manifest = store.push(folder, quiet).manifest
    damage_stored(store, request, manifest, "a changed byte")
    assert store.push(folder, quiet).sent_again == ()


def test_a_repair_is_no_way_to_change_a_version(store: Store, folder: Path) -> None:
    first = store.push(folder, quiet).manifest
    other_bytes(folder)
    with pytest.raises(ArtifactError, match="a version never changes"):
        store.push(folder, quiet, repair=True)
    assert store.find("tiny", "1.0.0").manifest == first


def test_a_folder_that_is_no_package_is_to_be_imported_before_a_push(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/config.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"hub: is not a packaged version .* models import`$"):
        store.push(tmp_path / "hub", quiet)
    with pytest.raises(ArtifactError, match=r"nowhere: no such folder: check the path"):
        store.push(tmp_path / "nowhere", quiet)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
def test_a_pull_onto_a_damaged_copy_fetches_it_again(
    store: Store,
    folder: Path,
    tmp_path: Path,
    how: str,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    manifest = store.push(folder, quiet).manifest
    stored, target = store.find("tiny", "1.0.0"), tmp_path / "out/here"
    pull(stored, target, quiet)
    damage(target / name, how)
    if name == "manifest.json" and how == "gone":
        with pytest.raises(ArtifactError, match="here: is there and holds no version: name"):
            pull(stored, target, quiet)
        return
    with caplog.at_level(logging.WARNING):
        assert pull(stored, target, quiet) is Pulled.REPLACED
    assert name in caplog.text
    verify(target, manifest)
    assert [path.name for path in target.parent.iterdir()] == ["here"]
    assert pull(stored, target, quiet) is Pulled.PRESENT


def test_a_damaged_copy_with_files_of_the_users_in_it_stays(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    store.push(folder, quiet)
    target = tmp_path / "here"
    pull(store.find("tiny", "1.0.0"), target, quiet)
    (target / "notes.txt").write_text("mine")
    assert pull(store.find("tiny", "1.0.0"), target, quiet) is Pulled.PRESENT
    damage(target / "model.safetensors", "gone")
    with pytest.raises(ArtifactError, match=r"none of its own \(notes\.txt\): move them away"):
        pull(store.find("tiny", "1.0.0"), target, quiet)
    assert (target / "notes.txt").read_text() == "mine"


def test_a_damaged_version_that_is_pulled_onto_itself_is_not_lost(
    tmp_path: Path, folder: Path
) -> None:
    store = open_store((tmp_path / "store").as_uri())
    store.push(folder, quiet)
    itself = tmp_path / "store/tiny/1.0.0"
    damage(itself / "model.safetensors", "cut short")
    with pytest.raises(ArtifactError, match="push the whole version again with `modelyard models"):
        pull(store.find("tiny", "1.0.0"), itself, quiet)
    assert (itself / "tokenizer.json").exists()


def test_a_place_that_cannot_be_written_is_named(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    store.push(folder, quiet)
    with pytest.raises(ArtifactError, match=r"^/proc/x: cannot be written \(.*name another folder"):
        pull(store.find("tiny", "1.0.0"), Path("/proc/x"), quiet)
    with pytest.raises(ArtifactError, match=r"^/proc/x/tiny/1\.0\.0: cannot be written \("):
        open_store("file:///proc/x").push(folder, quiet)


def test_a_bucket_that_is_not_there_is_named_and_nothing_else(s3: S3World, folder: Path) -> None:
    store = open_store("s3://no-such-bucket/models", patience=s3.patience)
    said = r"^s3://no-such-bucket: the store answered 404 NoSuchBucket: the bucket must exist: make"
    for ask in (lambda: store.push(folder, quiet), store.names, lambda: store.find("tiny", "1")):
        with pytest.raises(ArtifactError, match=said):
            ask()


def test_without_credentials_the_environment_of_a_running_platform_is_spoken_of(
    s3: S3World, s3_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.proxy.faults.append(Fault("status", "", 99, status=403, code="AccessDenied"))
    said = "started with: start it again with `make down` and `make up`"
    with pytest.raises(ArtifactError, match=said):
        s3_store.find("tiny", "1.0.0")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(s3.folder))
    with pytest.raises(ArtifactError, match=rf"Unable to locate credentials.*{said}"):
        open_store(s3.uri, patience=s3.patience).find("tiny", "1.0.0")
