"""The explorer answers as the models do, and serves only this machine's user."""

import json
import re
import socket
import threading
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.features.explorer.explorer import Explorer
from isogloss.training.states import word_states

RECIPE = {
    "title": "To be explored",
    "encoder": "shipped",
    "grid": {
        "corpus": "ud",
        "task": "upos",
        "source": "qaa",
        "targets": ["qad"],
        "seeds": [0, 1],
        "examples": 64,
        "dev_examples": 16,
        "optimization": {"epochs": 2, "learning_rate": 1e-3, "precision": "float32"},
        "method": [{"name": name} for name in ("source-only", "bilingual", "target-only")],
    },
    "measure": [
        {"name": "scores", "split": "test", "examples": 40},
        {"name": "interpolation", "examples": 16, "alphas": [0.0, 0.5, 0.6, 1.0]},
        {"name": "interpolation", "examples": 16, "alphas": [0.0, 1.0], "part": "encoder"},
        {"name": "plane", "examples": 16, "alphas": [0.0, 0.4, 1.0], "seeds": [0]},
    ],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    result = isogloss.run(RECIPE, out=tmp_path_factory.mktemp("explored"), engine="serial", report=False)
    return isogloss.read(result.out)


@pytest.fixture(scope="module")
def explorer(study):
    return Explorer(study.measurements, str(study.out))


@pytest.fixture(scope="module")
def path(explorer):
    return next(route for route in explorer.study()["routes"] if len(route["methods"]) == 2)


@pytest.mark.slow
def test_routes_have_the_measured_scores(study, explorer, path):
    rows = study.frame("interpolation")
    start, end = path["id"].split("-")
    rows = rows[(rows["start"] == start) & (rows["end"] == end) & (rows["metric"] == path["metric"])]
    assert set(rows["part"]) == {"all", "encoder"}
    rows = rows[rows["part"] == "all"]
    scores = {language["code"]: language["scores"] for language in path["languages"]}
    assert set(scores) == {"qaa", "qad"}
    for language_code, curve in scores.items():
        expected = rows[rows["language"] == language_code].sort_values("alpha")
        assert curve == expected[["alpha", "score"]].to_numpy().tolist()
    assert {language["code"]: (language["name"], language["role"]) for language in path["languages"]} == {
        "qaa": ("Ansa", "source"),
        "qad": ("Dunar", "target"),
    }


@pytest.mark.slow
def test_the_ends_of_a_path_answer_as_its_models(study, explorer, path):
    sentences = explorer.sentences(path["id"], "qad")["sentences"]
    assert len(sentences) == 8
    for alpha, run in zip((0.0, 1.0), path["id"].split("-"), strict=True):
        model = isogloss.load_model(study.out / run, precision="float32")
        for sentence in sentences:
            answer = explorer.answer(path["id"], [alpha], sentence["text"], "qad")["answer"]
            assert answer["words"] == sentence["text"].split()
            assert answer["labels"] == list(model.predict([sentence["text"]], language="qad")[0])
            assert len(sentence["gold"]["labels"]) == len(answer["labels"])


@pytest.mark.slow
def test_sentences_begin_with_those_whose_answers_change_most(explorer, path):
    sentences = explorer.sentences(path["id"], "qad")["sentences"]
    texts = [sentence["text"] for sentence in sentences]
    first_answers, last_answers = (
        explorer.answers(path["id"], [alpha], texts, "qad")["answers"] for alpha in (0.0, 1.0)
    )
    changed_totals = [
        sum(a != b for a, b in zip(first_answer["labels"], last_answer["labels"], strict=True))
        for first_answer, last_answer in zip(first_answers, last_answers, strict=True)
    ]
    assert changed_totals == sorted(changed_totals, reverse=True) and changed_totals[0] > 0
    with pytest.raises(ConfigError, match="texts: found 17; expected 16 or fewer"):
        explorer.answers(path["id"], [0.0], ["tuki"] * 17)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier_in_the_explorer(browser, server, barriers, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto(f"{server}/?token=secret")
    page.wait_for_selector("#seeds table", timeout=120_000)
    assert barriers(page) == []
    page.close()


def boxes_at_once(page, *selectors):
    """Return the place of the first element of each selector.

    The page is asked once: between two questions it may draw other elements, and the old ones have no place.
    """
    return page.evaluate(
        "all => all.map(one => document.querySelector(one).getBoundingClientRect().toJSON())", list(selectors)
    )


@pytest.mark.slow
def test_the_point_is_dragged_and_seeds_stand_below_their_gold_labels(browser, server):
    page = browser.new_page()
    page.goto(f"{server}/?token=secret")
    page.wait_for_selector("#seeds table", timeout=120_000)
    heads = page.locator("#seeds table").first.locator("th").all_inner_texts()
    assert heads == ["word", "gold", "seed 0", "seed 1"]
    assert page.locator("#seeds td.differs.wrong").count() > 0
    assert page.locator("#seeds td.wrong").first.inner_text().endswith("✗")
    page.evaluate("setInterval(drawChart, 1)")  # Each answer that arrives late draws the chart again.
    for share in (0.3, 0.6):
        chart, grid = boxes_at_once(page, "#chart", "#chart .grid")
        place = chart["x"] + share * chart["width"]
        page.mouse.click(place, chart["y"] + 100)
        alpha = (place - grid["x"]) / grid["width"]
        assert float(page.input_value("#first")) == pytest.approx(alpha, abs=0.03)
    page.close()


@pytest.mark.slow
def test_a_plane_has_its_models_at_the_corners(study, explorer):
    plane = next(route for route in explorer.study()["routes"] if len(route["methods"]) == 3)
    explorer.answer(plane["id"], [0.3, 0.4], "tuki mirne vuso .")
    for point, run in zip(([0, 0], [1, 0], [0, 1]), plane["id"].split("-"), strict=True):
        explorer.answer(plane["id"], point, "tuki mirne vuso .")
        moved_network = explorer._loaded.model.network
        expected = isogloss.load_model(study.out / run).network
        for (name, weight), other_parameter in zip(
            moved_network.named_parameters(), expected.parameters(), strict=True
        ):
            torch.testing.assert_close(weight, other_parameter, msg=name)


@pytest.mark.slow
def test_examples_on_which_seeds_disagree_are_those_of_the_predictions(study, explorer, path):
    disagreements = explorer.disagreements(path["id"], "qad")
    rows = study.frame("scores")
    rows = rows[(rows["method"] == "source-only") & (rows["language"] == "qad")].drop_duplicates("run")
    first_qad, second = (study.measurements.answers(run)["qad"] for run in rows["run"])
    assert disagreements["count"] == sum(first_qad[key] != second[key] for key in first_qad) > 0
    assert set(disagreements["examples"][0]["answers"]) == {"0", "1"}


@pytest.mark.slow
def test_what_cannot_be_answered_is_refused_in_a_line(explorer, path):
    with pytest.raises(ConfigError, match=r"point: .*\[0.5, 0.5\].*1"):
        explorer.answer(path["id"], [0.5, 0.5], "tuki")
    with pytest.raises(ConfigError, match="no route 'nothing'"):
        explorer.answer("nothing", [0.5], "tuki")
    for text in ("", "   ", ["a", ""], 7, "word " * 1000):
        with pytest.raises(DataError, match="text: "):
            explorer.answer(path["id"], [0.5], text)


@pytest.fixture(scope="module")
def server(explorer):
    """Serve the page with the command and a separate token. Return the host."""
    uvicorn = pytest.importorskip("uvicorn")
    from isogloss.features.explorer.server import application

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    host = f"127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(application(explorer, "secret", frozenset({host})), log_level="error")
    served_record = uvicorn.Server(config)
    thread = threading.Thread(target=served_record.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not served_record.started:
        time.sleep(0.02)
    yield f"http://{host}"
    served_record.should_exit = True
    thread.join()


def send_request(url: str, body: object = None, **headers: str):
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data=data, headers=headers)
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, response.read().decode(), response.headers
    except HTTPError as error:
        return error.code, error.read().decode(), error.headers


@pytest.mark.slow
def test_the_server_answers_the_bearer_of_its_token_alone(server, path):
    body = {"route": path["id"], "point": [1.0], "text": "tuki mirne vuso .", "language": "qad"}
    status, text, _ = send_request(f"{server}/api/answer", body, **{"x-token": "secret"})
    assert status == 200 and json.loads(text)["answer"]["words"] == ["tuki", "mirne", "vuso", "."]
    assert send_request(f"{server}/api/answer", body)[0] == 403
    assert (
        send_request(f"{server}/api/answer", body, **{"x-token": "secret", "host": "evil.example"})[0] == 403
    )
    assert send_request(f"{server}/api/nothing", body, **{"x-token": "secret"})[0] == 403
    assert send_request(f"{server}/")[0] == 403
    status, text, _ = send_request(
        f"{server}/api/answer", {**body, "text": "x" * 70_000}, **{"x-token": "secret"}
    )
    assert status == 400 and "65536 bytes" in json.loads(text)["error"]


@pytest.mark.slow
def test_the_page_may_run_its_own_script_alone(server):
    status, text, headers = send_request(f"{server}/?token=secret")
    policy = headers["content-security-policy"]
    assert status == 200 and "default-src 'none'" in policy and "script-src 'sha256-" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert "innerHTML" not in text and "page.js" not in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_moves_by_keyboard_without_an_error_or_a_request_out(browser, server, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    errors = []
    requests = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: (errors.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{server}/?token=secret")
    page.wait_for_selector("#sentences .word small", timeout=120_000)
    assert not page.is_visible("#second")
    text_content_before = page.text_content("#status")
    page.focus("#first")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.getElementById('first-value').textContent === '0.50'")
    assert page.text_content("#status") != text_content_before
    page.fill("#text", "<script>alert(1)</script> tuki")
    page.wait_for_selector("#answer .word", timeout=120_000)
    assert page.locator("#answer .word").first.text_content().startswith("<script>alert(1)</script>")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert requests and all(request.startswith(server) for request in requests)
    assert errors == []
    context.close()


STATUS = re.compile(
    r"(\w+): (.*) \((not measured here; )?measured on (\w+)(?: at the nearest point, (.*))?\)"
)
"""Metric, scores, whether they belong to a different point, split, and that point."""


def check_status(page, route, point, *, points):
    """Assert that the status has the measured scores of the nearest point, and names the point."""
    metric, scores, elsewhere, split, place = STATUS.fullmatch(page.text_content("#status")).groups()
    assert (metric, split) == (route["metric"], "dev")
    nearest = min(points, key=lambda item: sum(abs(a - b) for a, b in zip(item, point, strict=True)))
    texts = {"source", page.input_value("#language")}
    expected = [
        f"{language['name']} {100 * row[-1]:.1f}"
        for language in route["languages"]
        for row in language["scores"]
        if texts & {language["role"], language["code"]} and row[:-1] == pytest.approx(nearest)
    ]
    assert sorted(scores.split(" · ")) == sorted(expected)
    if nearest == pytest.approx(point):
        assert not elsewhere and place is None
    else:
        assert elsewhere and re.findall(r"-?[\d.]+", place) == [f"{alpha:g}" for alpha in nearest]
    assert page.get_attribute("#chart", "aria-label").endswith(
        page.text_content("#status").partition(" (")[2]
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_scores_are_those_of_measured_points_alone(explorer, browser, server, size):
    route = next(route for route in explorer.study()["routes"] if len(route["methods"]) == size)
    points = [row[:-1] for row in route["languages"][0]["scores"]]
    assert len(points) == {2: 4, 3: 9}[size]
    page = browser.new_page()
    page.goto(f"{server}/?token=secret")
    page.wait_for_selector("#sentences .word small", timeout=120_000)
    page.select_option("#route", route["id"])
    page.wait_for_function(f"document.getElementById('second-label').hidden === {str(size == 2).lower()}")
    page.wait_for_selector("#sentences .word small", timeout=120_000)
    for point in [(0, 0), (0.5, 0.4), (0.55, 0.4), (0.6, 1), (0.3, 0.15), (-0.5, 0.9), (1.2, 1.5), (1, 1)]:
        for name, alpha in zip(("#first", "#second"), point[: size - 1], strict=False):
            page.fill(name, str(alpha))
        check_status(page, route, point[: size - 1], points=points)
        if size == 3:
            check_marked_cell(page, point)
    page.close()


def check_marked_cell(page, point):
    """Assert that the point is on the cell with the shown score, or outside the plane on its side."""
    for circle, cell in zip(
        page.locator("#chart circle").all(), page.locator("#chart .measured").all(), strict=True
    ):
        x, y = (float(circle.get_attribute(name)) for name in ("cx", "cy"))
        left, top, width, height = (float(cell.get_attribute(name)) for name in ("x", "y", "width", "height"))
        assert left - 0.5 <= x <= left + width and top - 0.5 <= y <= top + height, point


ADJUSTED = {
    "title": "Adjusted, to be explored",
    "encoder": "shipped",
    "adjust": [
        {
            "name": "cross-lingual-adjustment",
            "pairs": ["qaa-qad"],
            "bitext": "bitext",
            "examples": 64,
            "precision": "float32",
        }
    ],
}


@pytest.mark.slow
def test_words_of_a_translation_are_those_of_the_encoders_before_and_after(tmp_path):
    result = isogloss.run(ADJUSTED, out=tmp_path, engine="serial", report=False)
    explorer = Explorer(isogloss.read(result.out).measurements, str(result.out))
    (adjusted_row,) = explorer.study()["adjusted"]
    pair = isogloss.load_corpus("bitext", "qaa-qad", "test", examples=1)[0]
    words = explorer.words(adjusted_row["id"], pair.first, pair.second)
    folders = {"before": "shipped", "after": result.out / adjusted_row["id"] / "model"}
    for moment, folder in folders.items():
        model, tokenizer = isogloss.load_encoder(folder)
        texts = [words["first"], words["second"]]
        first_state, second = (
            states[0] for states in word_states(model, tokenizer, texts, precision="float32")
        )
        cosines = torch.nn.functional.cosine_similarity(first_state[:, None], second[None], dim=-1)
        ranks = torch.tensor(words[moment])
        assert ranks.sort(dim=1).values.tolist() == [list(range(1, len(words["second"]) + 1))] * len(ranks)
        sorted_cosines = cosines.gather(1, ranks.argsort(dim=1))
        assert (sorted_cosines.diff(dim=1) < 1e-4).all(), "rank 1 has the highest cosine"
    assert adjusted_row["example"] == [pair.first, pair.second]
    word = words["first"][0]
    neighbours = explorer.neighbours(adjusted_row["id"], pair.first, word)
    layers = isogloss.load_encoder("shipped")[0].config.num_hidden_layers + 1
    assert neighbours["word"] == word
    assert [len(neighbours[moment]) for moment in folders] == [layers, layers]
    assert all(len(near_points) == 4 for moment in folders for near_points in neighbours[moment])
    with pytest.raises(DataError, match="word: 'nowhere'"):
        explorer.neighbours(adjusted_row["id"], pair.first, "nowhere")
    with pytest.raises(ConfigError, match="no adjusted encoder 'none'"):
        explorer.words("none", pair.first, pair.second)


def test_a_folder_without_a_route_is_refused_with_what_to_measure(study_folder):
    with pytest.raises(ConfigError, match=r"\[\[measure\]\]"):
        Explorer(isogloss.read(study_folder("interference")).measurements, "")
