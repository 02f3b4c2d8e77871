"""arbiter.py: who may compute, in examples, in a simulated machine, and in whatever order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mindspore_lite.serving.arbiter import HISTORY_NS, Arbiter, Party

MS = 1_000_000


def party(share: float = 1.0, wants: int = 1) -> Party:
    return Party(share, wants, lambda: None)


# --- examples ---


def test_one_that_is_alone_may_have_all_it_wants() -> None:
    arbiter, alone = Arbiter(2), party()
    for _ in range(5):
        assert arbiter.enter(alone, 0) == (True, [])
    assert arbiter.others(alone, 0) == 0 and not arbiter.is_heavy(alone, 0)


def test_one_that_comes_back_need_not_wait_for_runs_of_others() -> None:
    arbiter, flooded, quiet = Arbiter(2), party(), party()
    for _ in range(2):
        arbiter.enter(flooded, 0)
    assert arbiter.enter(quiet, 500 * MS) == (True, [])
    assert arbiter.others(quiet, 500 * MS) == 2


def test_a_core_is_kept_for_one_that_was_there_recently() -> None:
    arbiter, flooded, quiet = Arbiter(2), party(), party()
    for _ in range(2):
        arbiter.enter(flooded, 0)
    arbiter.enter(quiet, 500 * MS)
    assert arbiter.renew(flooded, 1, 501 * MS) == (False, [])  # there are too many
    assert arbiter.leave(quiet, 1, 502 * MS) == []  # and one stays free
    assert arbiter.renew(flooded, 1, 503 * MS) == (True, [])
    assert flooded.is_waiting
    later_ns = 502 * MS + HISTORY_NS + 1
    is_let, woken = arbiter.renew(flooded, 1, later_ns)
    assert is_let and woken == [flooded]  # it gets the core back, for the run that waits
    assert arbiter.enter(flooded, later_ns) == (True, [])
    assert flooded.running == 2


@pytest.mark.parametrize(("share", "goes_on"), [(1.0, False), (100.0, True)])
def test_a_run_goes_on_unless_another_has_used_less(share: float, goes_on: bool) -> None:
    arbiter, first, second = Arbiter(1), party(share), party()
    arbiter.enter(first, 0)
    for one in (first, second):
        arbiter.used(one, 200 * MS, 0)  # both are heavy
    assert arbiter.enter(second, 0) == (False, [])
    is_let, woken = arbiter.renew(first, 1, 300 * MS)
    assert (is_let, woken) == (goes_on, [] if goes_on else [second])


def test_what_was_on_offer_goes_to_others_when_nothing_waits_any_more() -> None:
    arbiter, a, b, c = Arbiter(1), party(), party(), party()
    arbiter.enter(a, 0)
    arbiter.enter(b, 0)
    assert arbiter.enter(c, 0) == (False, [])
    assert arbiter.leave(a, 1, MS) == [c]
    assert (c.offers, c.running) == (1, 1)
    assert arbiter.enter(a, MS)[0] is False
    assert arbiter.forgo(c, 2 * MS) == [a]
    assert (c.running, a.running) == (0, 1)


def test_runs_of_a_closed_pool_do_not_count() -> None:
    arbiter, hung, other = Arbiter(1), party(), party()
    arbiter.enter(hung, 0)
    arbiter.enter(other, 0)
    arbiter.forget(hung, MS)
    assert arbiter.enter(other, MS) == (True, [])
    arbiter.leave(hung, 1, 2 * MS)  # it came back after all
    assert hung.running == 0


def test_runs_that_did_not_ask_are_counted() -> None:
    arbiter, inline, other = Arbiter(2), party(), party()
    arbiter.enter(other, 0)
    assert not arbiter.is_heavy(inline, 0)
    for now_ns in range(0, 500 * MS, MS):
        arbiter.used(inline, MS, now_ns)
    assert arbiter.is_heavy(inline, 500 * MS)
    assert not arbiter.is_heavy(inline, 2000 * MS)


def test_a_wide_run_is_let_in_when_there_is_room_for_its_share() -> None:
    arbiter, narrow, wide = Arbiter(4), party(), party(wants=4)
    for _ in range(4):
        arbiter.enter(narrow, 0)
    arbiter.used(wide, 1000 * MS, 0)  # it is heavy, too, but has used less
    arbiter.used(narrow, 9000 * MS, 0)
    assert arbiter.enter(wide, MS) == (False, [])
    assert arbiter.renew(narrow, 1, 2 * MS) == (False, [])
    assert arbiter.renew(narrow, 1, 2 * MS) == (False, [wide])


# --- a machine of so many cores, on which models are flooded or quiet ---


@dataclass(eq=False)
class Load:
    """A model: requests of some length, one every `gap_ns`, or as many as can be run."""

    run_ns: int
    gap_ns: int = 0  # 0: flooded
    share: float = 1.0
    workers: int = 2
    party: Party = field(init=False)
    free: int = field(init=False)
    queue: list[int] = field(default_factory=list)  # when each came
    waits: list[int] = field(default_factory=list)
    used_ns: int = 0
    is_starving: bool = False

    def __post_init__(self) -> None:
        self.party = party(self.share)
        self.free = self.workers


class Simulation:
    """Pools as pool.py has them: a worker that ends a run asks for the next."""

    def __init__(self, cores: int, *loads: Load) -> None:
        self.arbiter = Arbiter(cores)
        self.loads = loads
        self.events: list[tuple[int, int, str, Load]] = []
        self.number = 0
        self.now_ns = 0
        self.most = 0
        for load in loads:
            if load.gap_ns:
                self.at(load.gap_ns, "arrive", load)
            else:
                load.queue = [0] * 1_000_000
                for _ in range(load.workers):
                    self.try_start(load)

    def at(self, when_ns: int, what: str, load: Load) -> None:
        self.number += 1
        heapq.heappush(self.events, (when_ns, self.number, what, load))

    def run(self, until_ns: int) -> None:
        while self.events and self.events[0][0] <= until_ns:
            self.now_ns, _, what, load = heapq.heappop(self.events)
            if what == "arrive":
                load.queue.append(self.now_ns)
                self.at(self.now_ns + load.gap_ns, "arrive", load)
                if not load.is_starving:
                    self.try_start(load)
            else:
                self.ended(load)
            self.most = max(self.most, sum(one.party.running for one in self.loads))

    def try_start(self, load: Load) -> None:
        if load.free and load.queue:
            is_let, woken = self.arbiter.enter(load.party, self.now_ns)
            if is_let:
                self.start(load)
            else:
                load.is_starving = True
            self.wake(woken)

    def start(self, load: Load) -> None:
        load.free -= 1
        load.waits.append(self.now_ns - load.queue.pop())
        self.at(self.now_ns + load.run_ns, "end", load)
        load.used_ns += load.run_ns
        if load.queue and load.free and not load.is_starving:
            self.try_start(load)

    def ended(self, load: Load) -> None:
        load.free += 1
        if not load.queue:
            self.wake(self.arbiter.leave(load.party, 1, self.now_ns))
            return
        is_let, woken = self.arbiter.renew(load.party, 1, self.now_ns)
        if is_let:
            self.start(load)
        else:
            load.is_starving = True
        self.wake(woken)

    def wake(self, woken: list[Party]) -> None:
        for load in self.loads:
            if load.party in woken:
                load.is_starving = False
                if load.queue and load.free:
                    self.try_start(load)
                else:
                    self.wake(self.arbiter.forgo(load.party, self.now_ns))


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize("run_ms", [1, 10, 300])
def test_a_quiet_model_never_waits_for_a_flooded_one(cores: int, run_ms: int) -> None:
    quiet = Load(run_ns=MS, gap_ns=50 * MS)
    flooded = Load(run_ns=run_ms * MS, workers=cores)
    simulation = Simulation(cores, quiet, flooded)
    simulation.run(10_000 * MS)
    assert len(quiet.waits) >= 199 and max(quiet.waits) == 0
    assert simulation.most <= cores + simulation.arbiter.beyond
    fair = max(1, cores - 1) / cores
    assert flooded.used_ns >= 0.95 * fair * cores * 10_000 * MS  # one core was kept, no more


def test_a_flooded_model_gets_the_cores_back_when_the_other_is_idle() -> None:
    quiet = Load(run_ns=MS, gap_ns=5000 * MS)
    flooded = Load(run_ns=10 * MS, workers=2)
    Simulation(2, quiet, flooded).run(20_000 * MS)
    assert flooded.used_ns >= 0.85 * 2 * 20_000 * MS
    assert max(quiet.waits) == 0


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("shares", [(1, 1), (3, 1), (1, 1, 1), (4, 2, 1), (1,) * 6])
def test_flooded_models_share_by_weight(cores: int, shares: tuple[int, ...]) -> None:
    loads = [Load(run_ns=(5 + 7 * at) * MS, share=s, workers=cores) for at, s in enumerate(shares)]
    simulation = Simulation(cores, *loads)
    simulation.run(20_000 * MS)
    total = sum(load.used_ns for load in loads)
    assert total >= 0.95 * cores * 20_000 * MS
    for load in loads:
        assert load.used_ns / total == pytest.approx(load.share / sum(shares), abs=0.01)


def test_many_quiet_models_do_not_starve_a_flooded_one() -> None:
    quiet = [Load(run_ns=MS, gap_ns=(300 + 7 * at) * MS) for at in range(12)]
    flooded = Load(run_ns=20 * MS, workers=2)
    Simulation(2, flooded, *quiet).run(20_000 * MS)
    assert flooded.used_ns >= 0.9 * 20_000 * MS
    assert all(max(load.waits) <= 40 * MS for load in quiet)


# --- in whatever order ---


class ArbiterMachine(RuleBasedStateMachine):
    """Pools that call an arbiter, played by hypothesis; each has one worker at most that waits."""

    @initialize(
        cores=st.integers(1, 4),
        shares=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=5),
        wants=st.sampled_from([1, 1, 2]),
    )
    def build(self, cores: int, shares: list[float], wants: int) -> None:
        self.arbiter = Arbiter(cores)
        self.parties = [party(share, wants) for share in shares]
        self.runs = dict.fromkeys(self.parties, 0)  # cores of runs under way
        self.starving: set[Party] = set()
        self.woken: list[Party] = []
        self.forced = 0
        self.now_ns = 1000

    def draw(self, data: st.DataObject) -> Party:
        return data.draw(st.sampled_from(self.parties))

    def busy(self) -> list[Party]:
        return [p for p in self.parties if self.runs[p]]

    def note(self, one: Party, is_let: bool, woken: list[Party]) -> None:
        assert one not in woken or one in self.starving
        self.woken += woken
        if is_let:
            self.runs[one] += one.wants
        else:
            self.starving.add(one)

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        one = self.draw(data)
        alone = all(p is one or p not in self.arbiter._recent for p in self.parties)
        is_let, woken = self.arbiter.enter(one, self.now_ns)
        assert is_let or not alone
        self.note(one, is_let, woken)

    @precondition(lambda self: self.busy())
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.busy()))
        self.runs[one] -= one.wants
        self.note(one, *self.arbiter.renew(one, one.wants, self.now_ns))

    @precondition(lambda self: self.busy())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.busy()))
        self.runs[one] -= one.wants
        self.woken += self.arbiter.leave(one, one.wants, self.now_ns)

    @precondition(lambda self: self.woken)
    @rule(takes=st.booleans())
    def look(self, takes: bool) -> None:
        """A pool that was woken takes what it was offered, or has nothing to do any more."""
        one = self.woken.pop(0)
        self.starving.discard(one)
        if takes:
            self.note(one, *self.arbiter.enter(one, self.now_ns))
        else:
            self.woken += self.arbiter.forgo(one, self.now_ns)

    @rule(data=st.data())
    def must(self, data: st.DataObject) -> None:
        one = self.draw(data)
        self.arbiter.force(one, self.now_ns)
        self.runs[one] += one.wants
        self.forced += one.wants

    @rule(data=st.data(), ms=st.integers(1, 50))
    def use_inline(self, data: st.DataObject, ms: int) -> None:
        self.arbiter.used(self.draw(data), ms * MS, self.now_ns)

    @rule(ms=st.sampled_from([1, 5, 100, 1200]))
    def time_passes(self, ms: int) -> None:
        self.now_ns += ms * MS

    @invariant()
    def the_books_are_right(self) -> None:
        for one in self.parties:
            assert one.running == self.runs[one] + one.offers * one.wants
            assert one.use >= 0 and one.virtual >= 0

    @invariant()
    def no_more_cores_are_given_than_there_are(self) -> None:
        """But for those that light ones and wide runs may have, those that must, and one alone."""
        arbiter = self.arbiter
        allowed = arbiter.cores + arbiter.beyond + self.forced
        wide = sum(p.wants - 1 for p in self.parties)
        self.alone_had = max(getattr(self, "alone_had", 0), self.most_of_one())
        assert sum(p.running for p in self.parties) <= allowed + wide + self.alone_had

    def most_of_one(self) -> int:
        return max((p.running for p in self.parties), default=0)

    @invariant()
    def nobody_that_waits_is_forgotten(self) -> None:
        """Who waits is woken, or waits for a run that will end."""
        for one in self.starving:
            assert one.is_waiting or one.offers or one in self.woken
            if not one.offers and one not in self.woken:
                assert any(p.running for p in self.parties)

    def teardown(self) -> None:
        """When runs end, all that wait have their turn."""
        if not hasattr(self, "arbiter"):
            return
        for _ in range(200):
            self.now_ns += MS
            while self.woken:
                self.look(True)
            busy = self.busy()
            if not busy:
                break
            self.runs[busy[0]] -= busy[0].wants
            self.woken += self.arbiter.leave(busy[0], busy[0].wants, self.now_ns)
        assert not self.starving


TestArbiter = ArbiterMachine.TestCase
TestArbiter.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
