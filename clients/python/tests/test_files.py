from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MakeClient
from servers import Proxy, Reply

import medley_client as sdk
from medley_client import Medley


def wav(seconds: int = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0\1" * 8000 * seconds)
    return file.getvalue()


audio = wav()


def chunks() -> Iterator[bytes]:
    for at in range(0, len(audio), 1000):
        yield audio[at : at + 1000]


class OneWay(io.RawIOBase):
    """A file that can be read once, as a pipe."""

    def __init__(self) -> None:
        self._file = io.BytesIO(audio)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


def test_are_uploaded_from_a_path_bytes_files_and_chunks_listed_read_and_deleted(
    medley: Medley, proxy: Proxy, tmp_path: Path
) -> None:
    path = tmp_path / 'ta"lk\n.wav'
    path.write_bytes(audio)
    with path.open("rb") as file:
        uploaded = [
            medley.files.upload(audio, filename="bytes.wav", purpose="talk"),
            medley.files.upload(memoryview(audio), expires_after_s=3600),
            medley.files.upload(file),
            medley.files.upload(OneWay()),
            medley.files.upload(chunks()),
            medley.files.upload(str(path)),
            medley.files.upload(path),
        ]
    assert {(each["kind"], each["bytes"]) for each in uploaded} == {("audio", len(audio))}
    assert uploaded[0]["filename"] == "bytes.wav"
    assert uploaded[2]["filename"] == uploaded[5]["filename"] != "file"
    assert uploaded[1]["expires_at"] - uploaded[1]["created_at"] == 3600
    ids = [each["id"] for each in uploaded]
    assert [each["id"] for each in medley.files.list(limit=2, order="asc")] == ids
    assert [each["id"] for each in medley.files.list(purpose="talk")] == ids[:1]
    task = medley.generate("sandbox/transcript", {"audio": ids[6], "prompt": "Good morning"})
    assert task["output"][0]["text"] == "Good morning"
    proxy.seen.clear()
    proxy.decide = lambda _seen, nth: "cut" if nth == 1 else "pass"
    medley.files.delete(ids[0])
    assert len(proxy.seen) == 2
    with pytest.raises(sdk.NotFoundError):
        medley.files.get(ids[0])
    with pytest.raises(sdk.NotFoundError):
        medley.files.delete(ids[0])


def test_an_upload_whose_answer_is_lost_is_not_sent_again_and_no_file_means_no_request(
    medley: Medley, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.decide = lambda _seen, _nth: "cut"
    with pytest.raises(sdk.ConnectionFailedError):
        medley.files.upload(audio)
    assert len(proxy.seen) == 1
    with pytest.raises(FileNotFoundError):
        medley.files.upload(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        medley.files.upload(tmp_path)
    with pytest.raises(sdk.MedleyError, match="bytes"):
        medley.files.upload(io.StringIO("text"))  # type: ignore[arg-type]
    with pytest.raises(sdk.MedleyError, match="path, bytes"):
        medley.files.upload(7)  # type: ignore[arg-type]
    assert len(proxy.seen) == 1


def test_an_upload_is_sent_again_from_where_its_file_was_after_a_429(medley: Medley, proxy: Proxy) -> None:
    proxy.decide = lambda _seen, nth: Reply(429, {"retry-after": "0"}) if nth == 1 else "pass"
    file = io.BytesIO(b"head" + audio)
    file.seek(4)
    assert medley.files.upload(file)["bytes"] == len(audio)
    proxy.seen.clear()
    with pytest.raises(sdk.RateLimitError):
        medley.files.upload(chunks())
    assert len(proxy.seen) == 1


def test_are_downloaded_as_bytes_a_stream_and_a_file_without_the_key(
    medley: Medley, make_client: MakeClient, proxy: Proxy, tmp_path: Path
) -> None:
    (item,) = medley.generate("sandbox/audio", {"prompt": "A song", "duration": 1})["output"]
    # The links of the service lead past the proxy; this one leads through it.
    item["url"] = proxy.url + item["url"][item["url"].index("/", len("http://")) :]
    proxy.seen.clear()
    whole = medley.download(item)
    medley.download_to(item, tmp_path / "song.wav")
    streamed = b"".join(medley.download_stream(item))
    assert len(whole) == item["size_bytes"]
    assert whole == streamed == (tmp_path / "song.wav").read_bytes()
    assert len(proxy.seen) == 3
    assert not any("authorization" in seen.headers for seen in proxy.seen)
    longer = item.copy()
    longer["size_bytes"] += 1
    once = make_client(max_retries=0)
    for act in (lambda: once.download(longer), lambda: list(once.download_stream(longer))):
        with pytest.raises(sdk.ConnectionFailedError):
            act()
    with pytest.raises(sdk.ConnectionFailedError):
        once.download_to(longer, tmp_path / "cut.wav")
    assert [each.name for each in tmp_path.iterdir()] == ["song.wav"]
    proxy.seen.clear()
    with pytest.raises(sdk.MedleyError, match="cannot be written"):
        medley.download_to(item, tmp_path / "none" / "song.wav")
    assert len(proxy.seen) == 1
    with pytest.raises(sdk.MedleyError, match="link"):
        medley.download("/etc/passwd")


def test_a_download_that_is_cut_begins_anew(medley: Medley, proxy: Proxy, tmp_path: Path) -> None:
    (item,) = medley.generate("sandbox/image", {"prompt": "x"})["output"]
    item["url"] = proxy.url + item["url"][item["url"].index("/", len("http://")) :]
    proxy.seen.clear()
    proxy.decide = lambda _seen, nth: "cut" if nth == 1 else "pass"
    medley.download_to(item, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size == item["size_bytes"]
    assert len(proxy.seen) == 2
