"""Whose request is next: clients take turns, the queue is bounded, and nobody waits for a client that is gone."""

import threading
import time

import pytest

from tsgkit.report._turns import BusyError, GoneError, Turns, client_of

LATER = time.monotonic() + 3600


class Crowd:
    """Requests that wait in threads, and the order in which they are called."""

    def __init__(self, turns):
        self.turns, self.called, self.refused, self.threads = turns, [], [], []

    def come(self, client, number):
        """One more request; returns when it waits, is called or is refused."""
        before = (len(self.called), len(self.refused), self.turns.n_waiting)
        thread = threading.Thread(target=self.wait, args=(client, number))
        thread.start()
        self.threads.append(thread)
        while (len(self.called), len(self.refused), self.turns.n_waiting) == before:
            time.sleep(0.001)

    def wait(self, client, number):
        try:
            self.turns.take(client, LATER, lambda: False)
        except BusyError:
            self.refused.append((client, number))
        else:
            self.called.append((client, number))

    def finish(self, n_called):
        """End one turn after the other."""
        for done in range(n_called):
            while len(self.called) <= done:
                time.sleep(0.001)
            self.turns.give_back(self.called[done][0])
        for thread in self.threads:
            thread.join()


def test_clients_take_turns():
    turns = Turns(1, 10)
    crowd = Crowd(turns)
    for client, number in [*(("many", number) for number in range(5)), ("one", 0), ("two", 0), ("two", 1)]:
        crowd.come(client, number)
    crowd.finish(8)
    expected = [("many", 0), ("one", 0), ("two", 0), ("many", 1), ("two", 1), ("many", 2), ("many", 3), ("many", 4)]
    # Who was not called yet comes before who was; after that they alternate.
    assert sorted(crowd.called[1:4]) == sorted([("one", 0), ("two", 0), ("many", 1)])
    assert sorted(crowd.called) == sorted(expected)
    assert [number for client, number in crowd.called if client == "many"] == [0, 1, 2, 3, 4]
    assert crowd.called.index(("two", 1)) < crowd.called.index(("many", 3))
    assert not turns.waiting
    assert not turns.at_work


def test_a_worker_goes_to_the_client_that_has_none():
    turns = Turns(2, 10)
    crowd = Crowd(turns)
    for number in range(4):
        crowd.come("many", number)  # two at work, two wait
    crowd.come("one", 0)
    turns.give_back("many")
    while len(crowd.called) < 3:
        time.sleep(0.001)
    assert crowd.called[2] == ("one", 0)
    for client in ("many", "one", "many", "many"):
        turns.give_back(client)
    for thread in crowd.threads:
        thread.join()
    assert len(crowd.called) == 5
    assert not turns.at_work


def test_a_full_queue_refuses_the_client_with_most_requests():
    turns = Turns(1, 3)
    crowd = Crowd(turns)
    for number in range(4):
        crowd.come("many", number)  # one at work, three wait
    crowd.come("one", 0)
    while not crowd.refused:
        time.sleep(0.001)
    assert crowd.refused == [("many", 3)]
    crowd.come("many", 4)
    assert crowd.refused == [("many", 3), ("many", 4)]
    crowd.come("two", 0)
    while len(crowd.refused) < 3:
        time.sleep(0.001)
    assert crowd.refused[2] == ("many", 2)
    # Of clients with as many requests each, the one that came last is refused.
    crowd.come("three", 0)
    assert crowd.refused[3] == ("three", 0)
    crowd.finish(4)
    assert {client for client, _ in crowd.called} == {"many", "one", "two"}


def test_no_place_to_wait():
    turns = Turns(1, 0)
    turns.take("a", LATER, lambda: False)
    with pytest.raises(BusyError):
        turns.take("b", LATER, lambda: False)
    turns.give_back("a")
    turns.take("b", LATER, lambda: False)


def test_who_is_gone_or_late_does_not_wait():
    turns = Turns(1, 5)
    turns.take("a", LATER, lambda: False)
    with pytest.raises(BusyError):
        turns.take("b", time.monotonic() + 0.05, lambda: False)
    asked = iter([False, False, True, True])
    with pytest.raises(GoneError):
        turns.take("b", LATER, lambda: next(asked))
    assert turns.n_waiting == 0
    turns.give_back("a")
    turns.take("c", LATER, lambda: False)


def test_who_is_a_client():
    assert client_of("127.0.0.1") == "127.0.0.1"
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff") == "2001:db8::/64"
    assert client_of("2001:db8:0:1::1") != client_of("2001:db8::1")
    assert client_of("fe80::1%eth0") == "fe80::/64"
    assert client_of("") == ""
    assert client_of("a name") == "a name"
