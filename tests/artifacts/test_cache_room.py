"""Room in the node cache: the limit, what is in use, and a full disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelyard.artifacts import cache_room, transfer
from modelyard.artifacts.cache import Held, fetch
from modelyard.artifacts.cache_folder import CacheFolder
from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.part import Part
from modelyard.artifacts.verify import verify
from modelyard.config.settings import Settings
from modelyard.contract.errors import ArtifactError
from tests.artifacts.conftest import S3World
from tests.artifacts.fault_proxy import Fault

MIB = 1 << 20


HOLDER = """
import fcntl, sys
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_SH)
print(flush=True)
input()
"""


def limited(s3: S3World, limit_bytes: float | None, cache: Path | None = None) -> Settings:
    home = s3.settings.home
    limit_gb = None if limit_bytes is None else limit_bytes / 1e9
    return Settings(home, home / "secret", cache_folder=cache, cache_limit_gb=limit_gb)


def three(s3: S3World, size_bytes: int = MIB) -> list[Manifest]:
    return [s3.pushed(extra_bytes=size_bytes, version=f"{n}.0.0") for n in (1, 2, 3)]


def fetched(s3: S3World, manifest: Manifest, settings: Settings) -> Held:
    return fetch(s3.address(manifest), settings, patience=s3.patience)


def there(settings: Settings, manifests: list[Manifest]) -> list[bool]:
    return [(settings.cache / "versions" / each.digest()).exists() for each in manifests]


def used_at(settings: Settings, manifest: Manifest, time_s: float) -> None:
    os.utime(settings.cache / "locks" / f"{manifest.digest()}.use", (time_s, time_s))


@pytest.mark.parametrize("oldest", [0, 1])
def test_the_least_lately_used_goes_first(s3: S3World, oldest: int) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    for version in versions[:2]:
        fetched(s3, version, settings).close()
    used_at(settings, versions[oldest], 1000.0)
    used_at(settings, versions[1 - oldest], 2000.0)
    fetched(s3, versions[2], settings).close()
    assert there(settings, versions) == [oldest == 1, oldest == 0, True]
    assert list((settings.cache / "trash").iterdir()) == []


def test_what_a_process_holds_stays_even_if_it_was_used_longest_ago(s3: S3World) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    held = fetched(s3, versions[0], settings)
    fetched(s3, versions[1], settings).close()
    used_at(settings, versions[0], 1000.0)
    fetched(s3, versions[2], settings).close()
    assert there(settings, versions) == [True, False, True]
    # Held for long, it must not be the first to go once its process has been killed.
    assert CacheFolder(settings.cache).last_used(versions[0].digest()) > 1000.0
    held.close()


def test_what_is_taken_between_the_look_and_the_eviction_stays(
    s3: S3World, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    for version in versions[:2]:
        fetched(s3, version, settings).close()
    used_at(settings, versions[0], 1000.0)
    evict = cache_room._evict
    taken: list[Held] = []

    def take_and_evict(cache: CacheFolder, digest: str) -> None:
        if not taken:
            first = versions[0]
            taken.append(fetch(s3.address(first), settings, digest=first.digest()))
        evict(cache, digest)

    monkeypatch.setattr(cache_room, "_evict", take_and_evict)
    fetched(s3, versions[2], settings).close()
    assert there(settings, versions) == [True, False, True]
    taken[0].close()


def test_what_another_process_holds_stays(s3: S3World) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    for version in versions[:2]:
        fetched(s3, version, settings).close()
    used_at(settings, versions[0], 1000.0)
    lock = settings.cache / "locks" / f"{versions[0].digest()}.use"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        fetched(s3, versions[2], settings).close()
        holder.communicate(b"\n")
    assert there(settings, versions) == [True, False, True]


def test_when_all_that_is_there_runs_the_new_version_is_refused_in_words(s3: S3World) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    held = [fetched(s3, version, settings) for version in versions[:2]]
    said = r"tiny@3.0.0: needs .* MB .* limit is .* MB, .* hold .* raise MODELYARD_CACHE_LIMIT_GB"
    with pytest.raises(ArtifactError, match=said):
        fetched(s3, versions[2], settings)
    assert there(settings, versions) == [True, True, False]
    held[1].close()
    fetched(s3, versions[2], settings).close()
    assert there(settings, versions) == [True, False, True]
    held[0].close()


def test_what_a_killed_fetch_left_is_evicted_like_a_version(s3: S3World) -> None:
    versions = three(s3)
    settings = limited(s3, 2.5 * versions[0].size_bytes)
    s3.proxy.faults.append(Fault("status", "extra.dat", times=4))
    with pytest.raises(ArtifactError, match="nothing arrived"):
        fetched(s3, versions[0], settings)
    left = settings.cache / "fetching" / versions[0].digest()
    assert left.exists()
    fetched(s3, versions[1], settings).close()
    used_at(settings, versions[0], 1000.0)
    fetched(s3, versions[2], settings).close()
    assert not left.exists()
    assert there(settings, versions) == [False, True, True]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB of its own."""
    folder = tmp_path / "small-disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine lets us mount no small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_version_larger_than_the_disk_is_refused_before_its_first_byte(
    s3: S3World, small_disk: Path
) -> None:
    manifest = s3.pushed(extra_bytes=6 * MIB)
    said = r"needs 6.\d MB more on the disk of .*, which has 4.\d MB free beside .*: make room"
    with pytest.raises(ArtifactError, match=said):
        fetched(s3, manifest, limited(s3, None, small_disk))
    assert s3.proxy.gets("extra.dat") == []


def test_on_a_full_disk_what_is_unused_goes_also_without_a_limit(
    s3: S3World, small_disk: Path
) -> None:
    versions = three(s3, int(1.5 * MIB))
    settings = limited(s3, None, small_disk)
    for version in versions:
        fetched(s3, version, settings).close()
    assert there(settings, versions) == [False, True, True]


def test_a_disk_that_others_fill_meanwhile_is_told_and_given_back(
    s3: S3World, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = s3.pushed(extra_bytes=3 * MIB)
    settings = limited(s3, None, small_disk)
    begin = Part.begin

    def fill_and_begin(part: Part, tag: str) -> None:
        """Somebody else's file takes the room that was free a moment ago."""
        begin(part, tag)
        (small_disk / "others").write_bytes(bytes(2 * MIB))

    with monkeypatch.context() as patch:
        patch.setattr(Part, "begin", fill_and_begin)
        with pytest.raises(
            ArtifactError, match=r"became full after \d+ of \d+ bytes .*No space left.* make room"
        ):
            fetched(s3, manifest, settings)
    assert list((small_disk / "fetching").iterdir()) == []
    (small_disk / "others").unlink()
    held = fetched(s3, manifest, settings)
    verify(held.folder, manifest)
    held.close()


def test_another_error_of_the_disk_is_not_called_full(
    s3: S3World, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = s3.pushed()

    def broken(part: Part, chunk: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Part, "append", broken)
    with pytest.raises(OSError, match="Input/output error"):
        fetched(s3, manifest, s3.settings)


RACER = """
import random, sys
from pathlib import Path
from modelyard.artifacts.cache import fetch
from modelyard.artifacts.verify import verify
from modelyard.config.settings import Settings
limit_gb, home, *addresses = sys.argv[1:]
settings = Settings(Path(home), Path("secret"), cache_limit_gb=float(limit_gb))
for _ in range(12):
    held = fetch(random.choice(addresses), settings)
    verify(held.folder, held.manifest)
    held.close()
"""


def test_processes_that_fetch_and_evict_at_once_always_hold_whole_versions(s3: S3World) -> None:
    versions = three(s3, 200_000)
    limit_gb = 2.5 * versions[0].size_bytes / 1e9
    addresses = [s3.address(version) for version in versions]
    command = [sys.executable, "-c", RACER, str(limit_gb), str(s3.settings.home), *addresses]
    # Two, so that one version each is held and there is always room for one more.
    racers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for racer in racers:
        _, errors = racer.communicate(timeout=300)
        assert racer.returncode == 0, errors
    assert sum(there(s3.settings, versions)) <= 2


def test_a_kill_between_the_rename_and_the_clean_up_counts_a_version_once(
    s3: S3World, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = s3.pushed(extra_bytes=MIB)
    settings = limited(s3, None)

    def killed(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # The first thing after the rename.
        patch.setattr(transfer, "fsync_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            fetched(s3, manifest, settings)
    cache, digest = CacheFolder(settings.cache), manifest.digest()
    assert there(settings, [manifest]) == [True]
    assert (cache.work(digest) / "size").exists()
    on_disk = manifest.size_bytes + (cache.version(digest) / "manifest.json").stat().st_size
    assert on_disk <= cache.size_bytes(digest) < on_disk + 100
    assert cache.awaited_bytes(digest) == 0
    fetched(s3, manifest, settings).close()
    assert not cache.work(digest).exists()


@pytest.mark.parametrize("under_way", [True, False])
def test_two_fetches_on_one_disk_are_both_counted_without_a_limit(
    s3: S3World, small_disk: Path, under_way: bool
) -> None:
    manifest = s3.pushed(extra_bytes=2 * MIB)
    cache, other = CacheFolder(small_disk), "f" * 64
    lock = cache.use_lock(other)
    if under_way:
        lock.share()
    cache.reserve(other, 3 * MIB)
    try:
        if under_way:
            with pytest.raises(ArtifactError, match=r"has 1.0 MB free beside what is being"):
                fetched(s3, manifest, limited(s3, None, small_disk))
        else:
            # Of a process that was killed: it takes no room any more.
            fetched(s3, manifest, limited(s3, None, small_disk)).close()
            assert cache.work(other).exists()
    finally:
        lock.release()
