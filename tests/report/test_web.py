"""The JSON interface: what it answers, what it refuses, and that requests do not disturb each other."""

import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from report.conftest import KINDS

from tsgkit._tools import serve as serve_command
from tsgkit._tools import train as train_command
from tsgkit._work_limit import WorkLimit
from tsgkit.errors import CancelledError, UsageError
from tsgkit.evaluation import evaluate
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.report._examples import Examples
from tsgkit.report._limits import Limits
from tsgkit.report._service import ParseService, RequestError
from tsgkit.treebank import load
from tsgkit.treebank._brackets import format_tree

pytest.importorskip("flask", reason="flask is not installed")
from tsgkit.report._web import HostCheck, create_app

pytestmark = pytest.mark.xdist_group("pictures")

SENTENCE = "The old man wants a bag of flour."
WORDS = ["The", "old", "man", "wants", "a", "bag", "of", "flour", "."]
LIMITS = Limits(max_length=12, max_body=2000, timeout=30.0, threads=2)


@pytest.fixture(scope="module")
def services(models):
    made = {kind: ParseService([model], [f"{kind}.model"], LIMITS) for kind, model in models.items()}
    same = [models["tsg"], models["srtsg"]]
    return made | {"product": ParseService(same, ["one", "two"], LIMITS)}


@pytest.fixture
def ask(services):
    def call(value, kind="tsg", status=200, **options):
        client = create_app(services[kind]).test_client()
        data = value if isinstance(value, bytes) else json.dumps(value)
        response = client.post("/api/parse", data=data, **{"content_type": "application/json", **options})
        assert response.status_code == status, response.get_data(as_text=True)
        assert response.mimetype == "application/json"
        found = json.loads(response.get_data())
        return found if status == 200 else found["error"]

    return call


@pytest.mark.parametrize("kind", [*KINDS, "product"])
def test_answers(ask, services, kind):
    answer = ask({"text": SENTENCE, "k": 4}, kind)
    assert answer["words"] == WORDS
    parse = services[kind].parser.analyse(WORDS, k=4, confidence=True)
    assert [each["brackets"] for each in answer["trees"]] == [format_tree(tree) for tree in parse.trees]
    assert answer["fallback"] == parse.fallback
    for tree, each in zip(parse.trees, answer["trees"], strict=True):
        assert 0 <= each["probability"] <= 1
        assert 0 <= each["share"] <= 1
        ElementTree.fromstring(each["svg"])
        assert len(each["nodes"]) == each["svg"].count("data-node=")
        labels = [node["label"] for node in each["nodes"] if node]
        assert labels == [node.label() for node in tree.subtrees()]
        assert each["latex"].count("\\begin{forest}") == 1
        derivation = each["derivation"]
        assert (derivation is None) == bool(each["why_not"])
        if derivation:
            ElementTree.fromstring(derivation["svg"])
            assert sum(one["size"] for one in derivation["fragments"]) >= len(labels)
            assert derivation["measure"] == ("weight" if kind == "cfg" else "count")
            assert all(one[derivation["measure"]] >= 0 for one in derivation["fragments"])
    assert answer["trees"][0]["derivation"]
    if kind != "cfg":
        assert any(one["examples"] for one in answer["trees"][0]["derivation"]["fragments"])
    assert [each["share"] for each in answer["trees"]] == parse.shares == sorted(parse.shares, reverse=True)
    assert sum(parse.shares) < 1 + 1e-9
    assert sum(each["probability"] for each in answer["trees"]) < 1 + 1e-6 or kind == "product"
    posteriors = {(each["label"], each["start"], each["end"]): each["posterior"] for each in answer["alternatives"]}
    assert all(0.01 <= value <= 1 for value in posteriors.values())
    for node in answer["trees"][0]["nodes"]:
        key = node and (node["label"], node["start"], node["end"])
        if node and node["posterior"] >= 0.011:
            assert posteriors[key] == node["posterior"]


def test_words_are_taken_as_they_are(ask, models):
    words = ["don't", "stop", "(", "<b>"]
    answer = ask({"words": words})
    assert answer["words"] == words
    assert "<b>" not in answer["trees"][0]["svg"]
    assert "&lt;b&gt;" in answer["trees"][0]["svg"]
    assert Tree.fromstring(answer["trees"][0]["brackets"]).leaves() == ["don't", "stop", "-LRB-", "<b>"]
    assert ask({"text": "don't stop"})["words"] == ["do", "n't", "stop"]


def test_derivation_by_another_model(ask):
    first, second = (ask({"text": SENTENCE, "model": number}, "product") for number in range(2))
    assert [each["brackets"] for each in first["trees"]] == [each["brackets"] for each in second["trees"]]
    assert (first["model"], second["model"]) == ("one", "two")
    names = [each["fragment"] for each in second["trees"][0]["derivation"]["fragments"]]
    assert any("-0" in name or "-1" in name for name in names)


def test_dependencies(ask, services):
    (tree,) = ask({"words": ["the", "old", "man", "smiled", "."]})["trees"]
    found = tree["dependencies"]
    assert [(each["word"], each["head"], each["label"]) for each in found["words"]] == [
        *(("the", 3, "DT"), ("old", 3, "JJ"), ("man", 4, "NP"), ("smiled", 0, "root"), (".", 4, ".")),
    ]
    assert found["svg"].startswith("<svg")
    assert "<style>" not in found["svg"]
    assert "\\depedge{4}{3}{NP}" in found["latex"]
    assert found["conllu"].count("\n") == 7


def test_the_treebank_of_the_model_decides_on_punctuation_and_heads(tmp_path):
    """Of brackets around punctuation, and of heads, the parameters for another treebank know nothing."""
    preset = tmp_path / "own.toml"
    preset.write_text('[heads]\ntable = "rightmost"\n[evaluate]\npunctuation = ["PU"]\n')
    trees = tmp_path / "own.mrg"
    trees.write_text("(S (N a) (V b) (PU c))\n" * 3)
    command = ["--quiet", "--model=cfg", f"--treebank={preset}", f"--output={tmp_path / 'm'}", str(trees)]
    assert train_command.main(command) == 0
    service = ParseService([Model.load(tmp_path / "m")], ["m"], Limits())
    assert service.parameters.delete_labels == ("TOP", "PU")
    (tree,) = service.answer({"words": ["a", "b", "c"]})["trees"]
    assert [each["head"] for each in tree["dependencies"]["words"]] == [3, 3, 0]
    other = ParseService([Model.load(tmp_path / "m")], ["m"], Limits(), head_rules="* leftmost")
    (tree,) = other.answer({"words": ["a", "b", "c"]})["trees"]
    assert [each["head"] for each in tree["dependencies"]["words"]] == [0, 1, 1]


def test_a_gold_tree_is_compared(ask):
    answer = ask({"text": SENTENCE, "k": 4})
    assert answer["gold"] is None
    assert "f1" not in answer["trees"][0]
    best, other = (each["brackets"] for each in answer["trees"][:2])
    compared = ask({"text": SENTENCE, "k": 4, "gold": f"( {other} )"})
    assert compared["gold"]["brackets"] == other
    ElementTree.fromstring(compared["gold"]["svg"])
    for each in compared["trees"]:
        score = evaluate([Tree.fromstring(other)], [Tree.fromstring(each["brackets"])])
        assert each["f1"] == round(score.f1, 2)
        assert each["recall"] == round(score.recall, 2)
        assert each["precision"] == round(score.precision, 2)
    assert compared["trees"][1]["f1"] == 100
    assert "✗" in compared["trees"][0]["svg"]
    assert "✗" not in compared["trees"][1]["svg"]
    # A tree of other words is no gold tree of this sentence: that of one of several sentences is sent with all.
    assert ask({"text": "The old man smiled.", "gold": best})["gold"] is None


def test_examples(services, models):
    client = create_app(services["tsg"]).test_client()
    value = client.get("/api/examples").get_json()
    assert value["source"] == "training"
    assert len(value["examples"]) == 8
    for each in value["examples"]:
        assert Tree.fromstring(each["gold"]).leaves() == each["words"]
        answer = client.post("/api/parse", json={"words": each["words"], "gold": each["gold"]}).get_json()
        assert answer.get("gold") or len(each["words"]) > LIMITS.max_length
    assert create_app(services["cfg"]).test_client().get("/api/examples").get_json() == {"source": "", "examples": []}
    given = Examples.of_treebank(load("village", "dev"), "village:dev", models["cfg"])
    service = ParseService([models["cfg"]], ["cfg"], LIMITS, examples=given)
    assert service.examples()["source"] == "village:dev"
    assert len(service.examples()["examples"]) == 8


@pytest.mark.parametrize(
    ("value", "status", "code", "message"),
    [
        ({"text": ""}, 400, "empty", "no words"),
        ({"text": " \n\t "}, 400, "empty", "no words"),
        ({"words": []}, 400, "empty", "no words"),
        ({}, 400, "form", "either text"),
        ({"text": "a", "words": ["a"]}, 400, "form", "not both"),
        ({"text": 3}, 400, "form", "text must be a string"),
        ({"text": "(S (NP (PRP I)) (VP (VBD ran)))"}, 400, "tree", "this is a tree, not a sentence"),
        ({"words": "a b"}, 400, "form", "list of non-empty strings"),
        ({"words": ["a", ""]}, 400, "form", "non-empty"),
        ({"words": ["a", "b c"]}, 400, "form", "word 2 contains a space"),
        ({"text": "a", "k": 0}, 400, "form", "k must be a whole number from 1 to 20"),
        ({"text": "a", "k": 2.5}, 400, "form", "k must be"),
        ({"text": "a", "k": True}, 400, "form", "k must be"),
        ({"text": "a", "model": 1}, 400, "form", "model must be a whole number from 0 to 0"),
        ({"text": "a", "speed": 1}, 400, "form", "unknown key 'speed'"),
        ({"text": "a", "gold": 1}, 400, "gold", "gold must be a string"),
        ({"text": "a", "gold": "(S (NP a)"}, 400, "gold", "gold tree:1:1: unbalanced brackets"),
        ({"text": "a", "gold": "(S (NP a))\n(S (NP a))"}, 400, "gold", "one tree in brackets, not 2"),
        ({"text": "a", "gold": ""}, 400, "gold", "one tree in brackets, not 0"),
        ({"text": "a", "gold": "(S (-NONE- *))"}, 400, "gold", "the gold tree has no words"),
        ([1], 400, "form", "JSON object"),
        (b"{", 400, "form", "not JSON"),
        (b'"\xff"', 400, "form", "not JSON in UTF-8"),
        (b"[" * 1900, 400, "form", "not JSON"),
        ({"words": ["a"] * 13}, 413, "length", "13 words; at most 12"),
        ({"text": "a" * 3000}, 413, "size", "larger than 2000 bytes"),
    ],
)
def test_requests_that_are_refused(ask, value, status, code, message):
    error = ask(value, status=status)
    assert error["code"] == code
    assert message in error["message"]
    assert ask({"words": ["the", "man"]})["words"] == ["the", "man"]


def test_other_ways_to_ask(services, ask):
    assert ask({"text": "a"}, status=415, content_type="text/plain")["code"] == "type"
    client = create_app(services["tsg"]).test_client()
    for method, path, status in (
        ("get", "/api/parse", 405),
        ("get", "/nothing", 404),
        ("get", "/static/../web.py", 404),
    ):
        response = getattr(client, method)(path)
        assert response.status_code == status
        assert json.loads(response.get_data())["error"]["message"]
    about = client.get("/api/about").get_json()
    assert about["models"] == [{"name": "tsg.model", "kind": "tsg"}]
    assert about["tokenization"] == "the rules of the Penn Treebank"
    assert about["limits"] == {"words": 12, "bytes": 2000, "seconds": 30.0, "trees": 20}


@pytest.mark.parametrize(("kind", "has_odds"), [("tsg", False), ("srtsg", True), ("product", True)])
def test_it_is_said_whether_scores_have_odds_of_labels(services, kind, has_odds):
    assert create_app(services[kind]).test_client().get("/api/about").get_json()["span_labels"] is has_odds


def test_headers_keep_others_out(services):
    client = create_app(services["tsg"]).test_client()
    for path in ("/", "/tree.css", "/static/app.js", "/static/style.css", "/favicon.ico", "/api/about", "/nothing"):
        response = client.get(path)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "unsafe" not in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        response.close()
    for host, status in (
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("localhost.evil.example:8000", 403),
    ):
        assert client.get("/api/about", headers={"Host": host}).status_code == status
    error = client.get("/api/about", headers={"Host": "evil.example"}).get_json()["error"]
    assert error["code"] == "host"
    assert "--allow-host" in error["message"]


@pytest.mark.parametrize(
    ("host", "local", "everywhere"),
    [
        ("localhost", True, True),
        ("LOCALHOST.:8000", True, True),
        ("127.0.0.2:8000", True, True),
        ("[::1]", True, True),
        ("[::1]:8000", True, True),
        ("10.1.2.3:8000", False, True),
        ("[2001:db8::1]:80", False, True),
        ("my.machine:8000", True, True),
        ("My.Machine", True, True),
        ("my.machine.evil.example", False, False),
        ("evil.example", False, False),
        ("evil.example:127.0.0.1", False, False),
        ("127.0.0.1.evil.example", False, False),
        ("localhost@evil.example", False, False),
        ("", False, False),
        (":8000", False, False),
        ("[", False, False),
    ],
)
def test_which_hosts_a_request_may_name(host, local, everywhere):
    assert HostCheck(["my.machine"]).allows(host) == local
    assert HostCheck(["my.machine"], only_local=False).allows(host) == everywhere


def test_names_that_the_command_allows():
    for host, names in (("127.0.0.1", {"a", "b.c"}), ("0.0.0.0", {"a", "b.c", socket.gethostname()})):
        arguments = {"--allow-host": "a,b.c", "--host": host}
        assert set(serve_command.allowed_names(arguments)) == {host, *names}
    assert serve_command.allowed_names({"--allow-host": None, "--host": "localhost"}) == ["localhost"]


def test_the_page_asks_nobody_else(services):
    client = create_app(services["tsg"]).test_client()
    for path in ("/", "/static/app.js", "/static/style.css", "/tree.css"):
        response = client.get(path)
        text = response.get_data(as_text=True).replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        response.close()


WORD_LIKE = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORD_LIKE, lambda below: st.lists(below, max_size=3)
)


@settings(max_examples=40, deadline=None)
@given(
    value=st.dictionaries(
        st.sampled_from(["text", "words", "gold", "k", "model"]), JSON | st.lists(WORD_LIKE, max_size=5), max_size=3
    )
)
def test_no_request_is_a_mistake_of_ours(services, value):
    client = create_app(services["tsg"]).test_client()
    response = client.post("/api/parse", json=value)
    assert response.status_code in (200, 400, 413)
    answer = json.loads(response.get_data())
    if response.status_code == 200:
        for each in answer["trees"]:
            ElementTree.fromstring(each["svg"].encode("utf-8"))
    else:
        assert answer["error"]["message"]


def test_words_that_are_hardly_text(ask):
    words = ["\x00", "\ud800", "\u200b", "\ufffe", "\N{NO-BREAK SPACE}", "é", "日本", "]]>", "-->"]
    answer = ask({"words": words})
    assert len(answer["words"]) == len(words)
    ElementTree.fromstring(answer["trees"][0]["svg"])


class SlowParser(Parser):
    """Works until it is told to go on, and gives up as a chart does."""

    def __init__(self, model):
        super().__init__(model)
        self.go = threading.Event()

    def analyse(self, words, *arguments, limit=None, **options):
        if words[0] == "slow":
            while not self.go.wait(0.01):
                limit.check()
        return super().analyse(words, *arguments, limit=limit, **options)


def test_what_takes_too_long_is_given_up_and_what_follows_is_answered(models):
    service = ParseService([models["cfg"]], ["cfg"], Limits(timeout=2.5, threads=1))
    service.parser = SlowParser(models["cfg"])
    client = create_app(service).test_client()
    response = client.post("/api/parse", json={"words": ["slow"]})
    assert (response.status_code, response.get_json()["error"]["code"]) == (503, "timeout")
    assert response.headers["Retry-After"] == "1"
    # The only worker comes back, though nobody told it to go on.
    wait_until_idle(service)
    assert client.post("/api/parse", json={"words": ["the", "man"]}).status_code == 200


def wait_until_idle(service):
    end = time.monotonic() + 600
    while service.turns.at_work:
        assert time.monotonic() < end, "a worker did not come back"
        time.sleep(0.01)


def test_a_sentence_that_nobody_waits_for_is_given_up(models):
    service = ParseService([models["cfg"]], ["cfg"], Limits(timeout=600.0, threads=1))
    service.parser = SlowParser(models["cfg"])
    gone = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(service.answer, {"words": ["slow"]}, "client", gone.is_set)
        while not service.turns.at_work:
            time.sleep(0.01)
        gone.set()
        with pytest.raises(RequestError, match="closed its connection"):
            job.result(timeout=600)
    wait_until_idle(service)
    assert service.answer({"words": ["the", "man"]})["trees"]


@pytest.mark.parametrize("kind", ["cfg", "srtsg", "product"])
def test_parsers_obey_the_limit(services, kind):
    request = services[kind].checked({"words": WORDS})
    cancelled = WorkLimit()
    cancelled.cancel()
    with pytest.raises(CancelledError):
        services[kind].explain(request, cancelled)
    # In the middle of a sentence: the chart looks at the limit, too.
    with pytest.raises(CancelledError):
        services[kind].parser.analyse(WORDS, limit=cancelled)
    assert services[kind].explain(request, WorkLimit())["trees"]


def test_clients_take_turns(models):
    service = ParseService([models["cfg"]], ["cfg"], Limits(timeout=600.0, threads=1, queue=3))
    service.parser = slow = SlowParser(models["cfg"])
    client = create_app(service).test_client()
    ask = partial(client.post, "/api/parse", environ_overrides={"REMOTE_ADDR": "192.0.2.1"})
    with ThreadPoolExecutor(5) as pool:
        greedy = [pool.submit(ask, json={"words": ["slow"]}) for _ in range(4)]  # one at work, three wait
        while service.turns.n_waiting < 3:
            time.sleep(0.01)
        modest = pool.submit(service.answer, {"words": ["the", "man"]}, "192.0.2.2")
        while not any(job.done() for job in greedy):
            time.sleep(0.01)
        slow.go.set()
        assert modest.result()["trees"]
        assert sorted(job.result().status_code for job in greedy) == [200, 200, 200, 503]


def test_what_is_too_much_is_refused_at_once(models):
    service = ParseService([models["cfg"]], ["cfg"], Limits(timeout=600.0, threads=1, queue=1))
    service.parser = slow = SlowParser(models["cfg"])
    client = create_app(service).test_client()
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(service.answer, {"words": ["slow"]}) for _ in range(2)]  # one at work, one waits
        while not service.turns.n_waiting:
            time.sleep(0.01)
        started = time.monotonic()
        response = client.post("/api/parse", json={"words": ["the", "man"]})
        assert (response.status_code, response.get_json()["error"]["code"]) == (503, "busy")
        assert response.headers["Retry-After"] == "1"
        assert time.monotonic() - started < 10
        slow.go.set()
        assert all(job.result()["trees"] for job in jobs)
    assert client.post("/api/parse", json={"words": ["the", "man"]}).status_code == 200


def test_requests_at_the_same_time_are_answered_as_one_after_the_other(services):
    requests = [{"words": WORDS[:length], "k": k} for length in (1, 3, 5, 7, 9) for k in (1, 3)] * 2
    service = services["product"]

    def answer(request):
        found = service.answer(request)
        del found["seconds"]
        return found

    expected = [answer(request) for request in requests]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, requests)) == expected


def test_limits_are_checked():
    for values in ({"max_length": 0}, {"threads": 0}, {"queue": -1}, {"timeout": 0.0}, {"timeout": float("nan")}):
        with pytest.raises(UsageError):
            Limits(**values)


def test_mistakes_are_told_without_details(services, monkeypatch):
    service = services["cfg"]
    monkeypatch.setattr(service, "answer", lambda *arguments: 1 / 0)
    response = create_app(service).test_client().post("/api/parse", json={"text": "a"})
    assert response.status_code == 500
    assert "ZeroDivision" not in response.get_data(as_text=True)


def test_what_the_command_refuses(paths, capsys, monkeypatch):
    model = str(paths["cfg"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve_command.main([f"--port={port}", model]) == 2
    assert f"--port={port}: Address already in use" in capsys.readouterr().err
    assert serve_command.main(["--host=no.such.host.invalid", model]) == 2
    assert "--host=no.such.host.invalid" in capsys.readouterr().err
    for option in (
        "--port=70000",
        "--port=x",
        "--threads=0",
        "--max-length=0",
        "--timeout=0",
        "--max-body=0",
        "--connections=0",
    ):
        assert serve_command.main([option, model]) == 2
        assert option.removeprefix("--").split("=")[0].replace("-", "_") in capsys.readouterr().err.replace("-", "_")
    assert serve_command.main(["no-such.model"]) == 2
    assert "no-such.model" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "tsgkit.report._connections", raising=False)
    monkeypatch.setitem(sys.modules, "waitress.adjustments", None)
    assert serve_command.main([model]) == 2
    assert "pip install 'tsgkit[web]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("10.1.2.3", False), ("name", False)],
)
def test_loopback(host, expected):
    assert serve_command.is_loopback(host) == expected
