"""`make soak` on PostgreSQL: in a schema of its own, which is gone afterwards; never in one that may be in use."""

import pytest

from bench import soak
from tests.crash.relay import Relay
from tests.own_postgres import NoServer
from tests.postgres import ask, in_schema, server


def test_a_url_that_names_a_schema_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STORE", "postgresql://nobody@127.0.0.1:1/none?sslmode=disable&schema=tasuki")
    assert soak.main() == 2
    assert "the URL names a schema, perhaps of a house that is in use" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"leave \?schema= out"):
        in_schema("postgresql://h/d?schema=tasuki", "mine")


def test_it_makes_a_schema_and_drops_it_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        base = server()
    except NoServer as why:
        pytest.skip(str(why))
    made: list[str] = []

    def breaks(relay: Relay) -> list[str]:
        assert relay.store is not None
        made.append(relay.store.rpartition("schema=")[2])
        ask(base, f"CREATE SCHEMA {made[0]}")
        raise ValueError("broken")

    monkeypatch.setenv("STORE", base)
    monkeypatch.setattr(soak, "play", breaks)
    with pytest.raises(ValueError, match="broken"):
        soak.main()
    assert made[0] != "tasuki"
    assert not ask(base, "SELECT 1 FROM pg_namespace WHERE nspname = $1", made[0])
