"""No part of an address is in the words for a fault, and a fault that quotes none keeps its own."""

import psycopg
import pytest
from redis import Redis, RedisError

from service.store.fault_words import words_of

ADDRESS = "postgresql://clerk:pa%40ss@db.town:5432/care?host=%2Frun%2Fcare"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('could not translate host name "ss@db.town" to address: Name or service not known', "no address"),
        ('connection to server at "db.town" (10.0.0.7), port 5432 failed: Connection refused', "connection refused"),
        ('connection to server on socket "/run/care/.s.PGSQL" failed: No such file or directory', "is not there"),
        ('FATAL:  password authentication failed for user "clerk"', "password authentication failed"),
        ('FATAL:  database "care" does not exist', "the database of its address does not exist"),
        ('FATAL:  role "clerk" does not exist', "the role of its address does not exist"),
        ('connection to server at "db.town" failed: SSL was required', "no encrypted connection is agreed upon"),
        ("something about pa@ss", "the error quotes the address, and is left out"),
        ("something about pa%40ss", "the error quotes the address, and is left out"),
    ],
)
def test_an_error_that_quotes_the_address_is_told_in_other_words(said: str, words: str) -> None:
    """Each kind is one that a library or a program of the database is known to say."""
    told = words_of(said, ADDRESS)
    assert words in told
    assert not [part for part in ("clerk", "pa%40", "ss@", "db.town", "5432", "/run/care") if part in told]


def test_an_error_without_the_address_is_passed_on_in_one_line() -> None:
    """A restore that fails says at which table."""
    said = "pg_restore: error: could not execute query:\n ERROR: permission denied for table heads"
    assert words_of(said, ADDRESS) == " ".join(said.split())


def test_what_the_libraries_say_of_a_password_with_an_at_sign_is_left_out() -> None:
    """They take the rest of it for a host."""
    address = "postgresql://clerk:s3@cret@127.0.0.1:1/care"
    with pytest.raises(psycopg.Error) as refused:
        psycopg.connect(address)
    assert "cret@127" in str(refused.value)
    assert "cret" not in words_of(refused.value, address)
    cache = "redis://:s3cret@127.0.0.1:1"
    with pytest.raises(RedisError) as unreachable, Redis.from_url(cache) as client:
        client.ping()
    assert words_of(unreachable.value, cache) == "connection refused"
