"""Tests run against a real service; `npm run test:python` starts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
from servers import Account, Proxy, Receiver, make_account

from medley_client import AsyncMedley, Medley

accounts_url = os.environ["MEDLEY_TEST_ACCOUNTS"]


@pytest.fixture(scope="session")
def shared_proxy() -> Iterator[Proxy]:
    proxy = Proxy(os.environ["MEDLEY_TEST_URL"])
    yield proxy
    proxy.stop()


@pytest.fixture
def proxy(shared_proxy: Proxy) -> Proxy:
    shared_proxy.decide = lambda _seen, _nth: "pass"
    shared_proxy.seen.clear()
    return shared_proxy


@pytest.fixture
def account() -> Account:
    return make_account(accounts_url)


@pytest.fixture
def poor_account() -> Account:
    return make_account(accounts_url, credit="0.001")


class MakeClient(Protocol):
    def __call__(
        self, *, max_retries: int = 3, timeout_s: float | None = None, api_key: str | None = None
    ) -> Medley: ...


@pytest.fixture
def make_client(proxy: Proxy, account: Account) -> Iterator[MakeClient]:
    clients: list[Medley] = []

    def make(*, max_retries: int = 3, timeout_s: float | None = None, api_key: str | None = None) -> Medley:
        key = account.key if api_key is None else api_key
        clients.append(Medley(base_url=proxy.url, api_key=key, max_retries=max_retries, timeout_s=timeout_s))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def medley(make_client: MakeClient) -> Medley:
    return make_client()


@pytest.fixture
def make_async(proxy: Proxy, account: Account) -> Callable[[], AsyncMedley]:
    return lambda: AsyncMedley(base_url=proxy.url, api_key=account.key)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()
