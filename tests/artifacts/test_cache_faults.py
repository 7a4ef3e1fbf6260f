"""The node cache against a real S3 server that fails in each way a store fails."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from modelyard.artifacts import cache
from modelyard.artifacts.cache import Held, fetch
from modelyard.artifacts.cache_folder import CacheFolder
from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ArtifactError, ConfigError
from tests.artifacts.conftest import S3World
from tests.artifacts.fault_proxy import Fault

MIB = 1 << 20


def fetched(s3: S3World, manifest: Manifest, digest: str | None = None) -> Held:
    return fetch(s3.address(manifest), s3.settings, digest=digest, patience=s3.patience)


def assert_whole(held: Held, manifest: Manifest) -> None:
    assert held.manifest == manifest
    verify(held.folder, manifest)
    held.close()


def test_a_version_is_fetched_once_and_then_found(s3: S3World) -> None:
    manifest = s3.pushed()
    assert_whole(fetched(s3, manifest), manifest)
    assert_whole(fetched(s3, manifest), manifest)
    for file in manifest.files:
        assert len(s3.proxy.gets(f"/{file.path}")) == 1


def test_progress_ends_with_all_bytes(s3: S3World) -> None:
    manifest = s3.pushed()
    told: list[tuple[int, int]] = []
    held = fetch(
        s3.address(manifest),
        s3.settings,
        patience=s3.patience,
        progress=lambda done, total: told.append((done, total)),
    )
    assert_whole(held, manifest)
    assert told[-1] == (manifest.size_bytes, manifest.size_bytes)


def test_with_its_digest_a_cached_version_is_used_while_the_store_is_down(s3: S3World) -> None:
    manifest = s3.pushed()
    fetched(s3, manifest).close()
    s3.proxy.faults.append(Fault("status", "", times=1000))
    assert_whole(fetched(s3, manifest, digest=manifest.digest()), manifest)


def test_a_truncated_body_is_resumed_where_it_broke_off(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=8 * MIB)
    s3.proxy.faults.append(Fault("truncate", "extra.dat"))
    assert_whole(fetched(s3, manifest), manifest)
    first, second = s3.proxy.gets("extra.dat")
    assert first.range is None
    start = int((second.range or "").removeprefix("bytes=").removesuffix("-"))
    assert 3 * MIB <= start <= 4 * MIB
    tag = s3.client.head_object(Bucket=s3.bucket, Key=s3.key(manifest, "extra.dat"))["ETag"]
    assert second.if_match == tag


def test_a_transfer_that_stalls_at_half_times_out_and_is_resumed(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=8 * MIB)
    s3.proxy.faults.append(Fault("stall", "extra.dat"))
    soon = replace(s3.patience, read_s=1.5)
    assert_whole(fetch(s3.address(manifest), s3.settings, patience=soon), manifest)
    assert [asked.range is None for asked in s3.proxy.gets("extra.dat")] == [True, False]


def test_a_line_that_breaks_often_but_brings_bytes_each_time_ends_well(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=16 * MIB)
    # Each break leaves half of what was missing: 8, 4 and 2 MiB.
    s3.proxy.faults.append(Fault("truncate", "extra.dat", times=3))
    impatient = replace(s3.patience, attempts=1)
    assert_whole(fetch(s3.address(manifest), s3.settings, patience=impatient), manifest)


def test_wrong_bytes_are_thrown_away_and_fetched_again(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.proxy.faults.append(Fault("flip", "model.safetensors", times=2))
    assert_whole(fetched(s3, manifest), manifest)
    assert [asked.range for asked in s3.proxy.gets("model.safetensors")] == [None] * 3


def test_bytes_that_stay_wrong_fail_naming_both_hashes_and_leave_nothing(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.proxy.faults.append(Fault("flip", "model.safetensors", times=99))
    listed = next(file for file in manifest.files if file.path == "model.safetensors")
    said = rf"model.safetensors: expected sha256 {listed.sha256} .* got [0-9a-f]{{64}} .* 3 times"
    with pytest.raises(ArtifactError, match=said):
        fetched(s3, manifest)
    assert not (s3.settings.cache / "versions").exists()


def test_an_object_of_another_size_is_told(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.client.put_object(Bucket=s3.bucket, Key=s3.key(manifest, "config.json"), Body=b"{}")
    with pytest.raises(ArtifactError, match=r"config.json: expected \d+ bytes, got a file of 2"):
        fetched(s3, manifest)


def test_an_object_replaced_during_a_broken_transfer_is_read_from_its_start(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=8 * MIB)
    key = s3.key(manifest, "extra.dat")
    good = s3.client.get_object(Bucket=s3.bucket, Key=key)["Body"].read()
    s3.client.put_object(Bucket=s3.bucket, Key=key, Body=bytes(8 * MIB))
    s3.proxy.faults += [
        Fault("truncate", "extra.dat"),
        Fault("status", "extra.dat", times=99),
    ]
    with pytest.raises(ArtifactError, match="nothing arrived in 4 attempts"):
        fetched(s3, manifest)
    s3.client.put_object(Bucket=s3.bucket, Key=key, Body=good)
    s3.proxy.faults.clear()
    s3.proxy.asked.clear()
    assert_whole(fetched(s3, manifest), manifest)
    conditional, again = s3.proxy.gets("extra.dat")
    assert conditional.range is not None
    assert again.range is None


def test_503s_are_waited_out(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.proxy.faults += [
        Fault("status", "manifest.json", times=2),
        Fault("status", "model.safetensors", times=3),
    ]
    assert_whole(fetched(s3, manifest), manifest)


def test_a_store_that_only_says_503_fails_after_the_attempts_that_are_allowed(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.proxy.faults.append(Fault("status", "model.safetensors", times=99))
    with pytest.raises(ArtifactError, match=r"503 SlowDown; nothing arrived in 4 attempts"):
        fetched(s3, manifest)
    assert len(s3.proxy.gets("model.safetensors")) == 4


def test_a_missing_object_fails_at_once(s3: S3World) -> None:
    manifest = s3.pushed()
    s3.client.delete_object(Bucket=s3.bucket, Key=s3.key(manifest, "model.safetensors"))
    with pytest.raises(ArtifactError, match=r"model.safetensors: .*404 NoSuchKey: it is not there"):
        fetched(s3, manifest)
    assert len(s3.proxy.gets("model.safetensors")) == 1


def test_a_missing_version_and_bucket_are_told(s3: S3World) -> None:
    with pytest.raises(ArtifactError, match=r"NoSuchKey: it is not there"):
        fetch(f"{s3.uri}/tiny/9.9.9", s3.settings, patience=s3.patience)
    with pytest.raises(ArtifactError, match=r"NoSuchBucket: the bucket must exist"):
        fetch("s3://no-such-bucket/tiny/9.9.9", s3.settings, patience=s3.patience)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (400, "ExpiredToken"), (403, "InvalidAccessKeyId")],
)
def test_revoked_credentials_fail_at_once(s3: S3World, status: int, code: str) -> None:
    manifest = s3.pushed()
    s3.proxy.faults.append(Fault("status", "model.safetensors", times=99, status=status, code=code))
    with pytest.raises(ArtifactError, match=f"{status} {code}: the credentials are missing"):
        fetched(s3, manifest)
    assert len(s3.proxy.gets("model.safetensors")) == 1


def test_no_credentials_at_all_are_told(s3: S3World, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = s3.pushed()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(s3.folder / "none"))
    with pytest.raises(ArtifactError, match=r"Unable to locate credentials: correct the"):
        fetched(s3, manifest)


def test_a_store_that_is_not_there_fails_after_its_attempts(
    s3: S3World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ArtifactError, match=r"asked 4 times: check the store, the network"):
        fetch(f"{s3.uri}/tiny/1.0.0", s3.settings, patience=s3.patience)


def test_another_digest_than_the_pinned_one_is_refused_naming_both(s3: S3World) -> None:
    manifest = s3.pushed()
    pinned = "0" * 64
    with pytest.raises(ArtifactError, match=f"expected .* {pinned}, got {manifest.digest()}"):
        fetched(s3, manifest, digest=pinned)


def test_a_digest_of_another_version_is_refused_when_that_one_is_cached(s3: S3World) -> None:
    one, two = s3.pushed(), s3.pushed(version="2.0.0")
    fetched(s3, one).close()
    with pytest.raises(ArtifactError, match=r"is of tiny@1.0.0: give the digest of tiny@2"):
        fetched(s3, two, digest=one.digest())


@pytest.mark.parametrize("uri", ["s3://Bucket!/m/n/1", "s3://", "s3://b", "http://x/y/z/1", "s3:/"])
def test_an_address_that_is_none_is_a_config_error(s3: S3World, uri: str) -> None:
    with pytest.raises(ConfigError, match="write "):
        fetch(uri, s3.settings)


def test_a_corrupt_entry_is_thrown_away_and_fetched_again(s3: S3World) -> None:
    manifest = s3.pushed()
    held = fetched(s3, manifest)
    (held.folder / "model.safetensors").write_bytes(b"rotten")
    assert held.discard()
    held.close()
    assert_whole(fetched(s3, manifest), manifest)


def test_discard_spares_what_another_process_has_fetched_again(s3: S3World) -> None:
    manifest = s3.pushed()
    first, second = fetched(s3, manifest), fetched(s3, manifest)
    assert first.discard()
    renewed = fetched(s3, manifest)
    assert second.discard()
    assert_whole(renewed, manifest)


@pytest.mark.parametrize("damage", ["manifest.json", "model.safetensors"])
def test_an_entry_cut_short_is_noticed_and_fetched_again(s3: S3World, damage: str) -> None:
    manifest = s3.pushed()
    held = fetched(s3, manifest)
    os.truncate(held.folder / damage, 10)
    held.close()
    assert_whole(fetched(s3, manifest, digest=manifest.digest()), manifest)


def test_a_file_address_is_used_in_place(s3: S3World) -> None:
    s3.pushed()
    (folder,) = s3.folder.glob("made-*")
    held = fetch(folder.as_uri(), s3.settings)
    assert held.folder == folder
    assert held.discard() is False
    assert not s3.settings.cache.exists()


FETCHER = """
import sys
import time
from dataclasses import replace
from pathlib import Path
from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.cache import fetch
from modelyard.config.settings import Settings
held = fetch(sys.argv[1], Settings(Path(sys.argv[2]), Path("secret")), patience=Patience(read_s=20))
# Not getrusage: its peak includes that of the process which started this one.
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(held.folder, peak, flush=True)
"""


def fetcher(s3: S3World, manifest: Manifest) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCHER, s3.address(manifest), str(s3.settings.home)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.split()


def test_of_eight_processes_one_downloads_and_all_get_the_version(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=4 * MIB)
    # Long enough that all eight are there before the first is done.
    s3.proxy.faults.append(Fault("slow", "extra.dat", pause_s=3))
    processes = [fetcher(s3, manifest) for _ in range(8)]
    folders = {said(process)[0] for process in processes}
    (folder,) = folders
    verify(Path(folder), manifest)
    assert {file.path: len(s3.proxy.gets(f"/{file.path}")) for file in manifest.files} == {
        file.path: 1 for file in manifest.files
    }


def test_a_killed_fetch_leaves_nothing_that_is_taken_for_whole_and_is_resumed(s3: S3World) -> None:
    manifest = s3.pushed(extra_bytes=8 * MIB)
    s3.proxy.faults.append(Fault("stall", "extra.dat"))
    process = fetcher(s3, manifest)
    part = s3.settings.cache / "fetching" / manifest.digest() / "parts"
    while not any(path.stat().st_size >= 3 * MIB for path in part.glob("*")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (s3.settings.cache / "versions").exists()
    s3.proxy.asked.clear()
    assert_whole(fetched(s3, manifest), manifest)
    (resumed,) = s3.proxy.gets("extra.dat")
    assert int((resumed.range or "").removeprefix("bytes=").removesuffix("-")) >= 3 * MIB


def test_memory_does_not_grow_with_the_size_of_a_file(s3: S3World) -> None:
    small = s3.pushed()
    large = s3.pushed(extra_bytes=300 * MIB, version="2.0.0")
    (_, small_kib), (_, large_kib) = (said(fetcher(s3, each)) for each in (small, large))
    # Four files at once of 1 MiB chunks, and urllib3's own buffers.
    assert int(large_kib) - int(small_kib) < 32 * 1024


@pytest.mark.parametrize("pinned", [True, False])
def test_an_entry_that_cannot_be_read_now_is_not_thrown_away(
    s3: S3World, monkeypatch: pytest.MonkeyPatch, pinned: bool
) -> None:
    manifest = s3.pushed()
    held = fetched(s3, manifest)

    def no_more_files(folder: Path, manifest: Manifest, *, hashes: bool) -> None:
        raise ArtifactError("too many open files") from OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(cache, "verify", no_more_files)
        with pytest.raises(ArtifactError, match="too many open files"):
            fetched(s3, manifest, digest=manifest.digest() if pinned else None)
    assert_whole(held, manifest)
    lock = CacheFolder(s3.settings.cache).use_lock(manifest.digest())
    assert lock.try_take()
    lock.release()


def test_a_damaged_entry_goes_though_another_replica_holds_it(s3: S3World) -> None:
    manifest = s3.pushed()
    loaded, starting = fetched(s3, manifest), fetched(s3, manifest)
    weights = (loaded.folder / "model.safetensors").open("rb")
    assert starting.discard()
    starting.close()
    renewed = fetched(s3, manifest)
    with weights:
        assert hashlib.sha256(weights.read()).hexdigest() == next(
            file.sha256 for file in manifest.files if file.path == "model.safetensors"
        )
    loaded.close()
    assert_whole(renewed, manifest)
