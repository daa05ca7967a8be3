"use strict";
const token = new URLSearchParams(location.search).get("token") || "";
const get = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let study = null, route = null, shown = [], asked = 0, waiting = false, again = false;
let pointAt = () => [];  // The point of the chart at a place of its drawing.

async function ask(name, body) {
  const response = await fetch("/api/" + name, {
    method: "POST", headers: { "x-token": token, "content-type": "application/json" }, body: JSON.stringify(body || {}) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const percent = (score) => (100 * score).toFixed(1);
const point = () => (route.methods.length === 3 ? [+get("first").value, +get("second").value] : [+get("first").value]);
const language = () => route.languages.find((one) => one.code === get("language").value);

// Scores are rows of α, or α₁ and α₂, and the score; only these points were measured.
const distance = (row, at) => Math.max(...at.map((alpha, axis) => Math.abs(row[axis] - alpha)));

function nearest(scores, at) {
  const far = (row) => at.reduce((sum, alpha, axis) => sum + Math.abs(row[axis] - alpha), 0);
  return scores.reduce((best, row) => (far(row) < far(best) ? row : best));
}

const scoreAt = (scores, at) => (scores.find((row) => distance(row, at) < 1e-6) || []).at(-1);

function drawChart() {
  const chart = get("chart");
  chart.replaceChildren();
  const languages = [route.languages.find((one) => one.role === "source"), language()].filter(
    (one, number, all) => one && all.indexOf(one) === number);
  if (route.methods.length === 3) drawPlane(chart, languages); else drawPath(chart, languages);
}

function drawPath(chart, languages) {
  const alphas = languages[0].scores.map((row) => row[0]);
  const drawnScores = study.routes.filter((one) => one.methods.length === 2 && one.target === route.target)
    .flatMap((one) => one.languages).filter((one) => languages.some((own) => own.code === one.code))
    .flatMap((one) => one.scores.map((row) => row[1]));
  const lowest = Math.floor(10 * Math.min(...drawnScores)) / 10;
  const width = Math.max(300, Math.min(640, chart.clientWidth || 640)), right = width - 90;
  chart.setAttribute("viewBox", "0 0 " + width + " 280");
  const x = (alpha) => 50 + (right - 50) * (alpha - alphas[0]) / (alphas[alphas.length - 1] - alphas[0]);
  const y = (score) => 20 + 220 * (1 - score) / Math.max(1 - lowest, 0.1);
  for (let score = lowest; score <= 1.001; score += 0.1) {
    chart.append(drawn("line", { x1: 50, x2: right, y1: y(score), y2: y(score), class: "grid" }),
      drawn("text", { x: 42, y: y(score) + 4, "text-anchor": "end" }, (100 * score).toFixed(0)));
  }
  for (const [alpha, name] of [[0, "0: " + route.methods[0]], [1, "1: " + route.methods[1]]]) {
    chart.append(drawn("line", { x1: x(alpha), x2: x(alpha), y1: 20, y2: 240, class: "grid" }),
      drawn("text", { x: x(alpha), y: 260, "text-anchor": "middle" }, name));
  }
  pointAt = (place) => [alphas[0] + (place.x - 50) / (right - 50) * (alphas[alphas.length - 1] - alphas[0])];
  // Other seeds of the same methods, as thin lines.
  const alike = (one) => one.id !== route.id && ["corpus", "task", "source", "target"].every((key) => one[key] === route[key])
    && one.methods.join() === route.methods.join();
  for (const other of study.routes.filter(alike)) {
    for (const one of other.languages.filter((one) => languages.some((own) => own.code === one.code))) {
      const line = one.scores.map((row, number) => (number ? "L" : "M") + x(row[0]).toFixed(1) + " " + y(row[1]).toFixed(1));
      const path = drawn("path", { d: line.join(""), class: "faint " + (one.role === "source" ? "source" : "target") });
      path.append(drawn("title", {}, one.name + ", seed " + other.seed));
      chart.append(path);
    }
  }
  const [alpha] = point();
  if (alpha >= alphas[0] && alpha <= alphas[alphas.length - 1])
    chart.append(drawn("line", { x1: x(alpha), x2: x(alpha), y1: 20, y2: 240, class: "now" }));
  const measured = nearest(languages[0].scores, [alpha]).slice(0, 1);
  const ends = languages.map((one) => y(one.scores[one.scores.length - 1][1]) + 4);
  if (ends.length > 1 && Math.abs(ends[0] - ends[1]) < 14) ends[ends[0] > ends[1] ? 0 : 1] = Math.min(...ends) + 14;
  languages.forEach((one, number) => {
    const line = one.scores.map((row, number) => (number ? "L" : "M") + x(row[0]).toFixed(1) + " " + y(row[1]).toFixed(1));
    const score = scoreAt(one.scores, measured), role = one.role === "source" ? "source" : "target";
    chart.append(drawn("path", { d: line.join(""), class: role }),
      drawn("text", { x: right + 6, y: ends[number], class: role }, one.name));
    if (score !== undefined) chart.append(drawn("circle", { cx: x(measured[0]), cy: y(score), r: 5, class: role }));
  });
  announce(languages, measured);
}

// Each measured value has the width up to half-way to its neighbours, so that the nearest cell lies under a point.
function cellsOf(values) {
  const middles = values.slice(1).map((value, number) => (value + values[number]) / 2);
  const first = middles.length ? 2 * values[0] - middles[0] : values[0] - 0.5;
  const last = middles.length ? 2 * values[values.length - 1] - middles[middles.length - 1] : values[0] + 0.5;
  const ends = [first, ...middles, last].map((end) => 200 * (end - first) / (last - first));
  const place = (alpha) => Math.max(0, Math.min(200, 200 * (alpha - first) / (last - first)));
  const value = (at) => first + at / 200 * (last - first);
  return { place, value, cell: (value) => ends.slice(values.indexOf(value), values.indexOf(value) + 2) };
}

function drawPlane(chart, languages) {
  const at = point(), measured = nearest(languages[0].scores, at).slice(0, 2);
  chart.setAttribute("viewBox", "0 0 640 280");
  languages.forEach((one, number) => {
    const [across, up] = [0, 1].map((axis) => cellsOf([...new Set(one.scores.map((row) => row[axis]))].sort((a, b) => a - b)));
    if (!number) pointAt = (place) => [across.value(((place.x - 60) % 300 + 300) % 300), up.value(230 - place.y)];
    const left = 60 + 300 * number, scores = one.scores.map((row) => row[2]);
    const low = Math.min(...scores), high = Math.max(...scores);
    for (const row of one.scores) {
      const [x1, x2] = across.cell(row[0]), [y1, y2] = up.cell(row[1]);
      chart.append(drawn("rect", {
        x: left + x1, y: 230 - y2, width: x2 - x1 + 0.5, height: y2 - y1 + 0.5, fill: "currentColor",
        "fill-opacity": (0.05 + 0.75 * (row[2] - low) / (high - low || 1)).toFixed(3),
        class: distance(row, measured) < 1e-6 ? "measured" : "" }));
    }
    for (const [corner, name] of [[[0, 0], route.methods[0]], [[1, 0], route.methods[1]], [[0, 1], route.methods[2]]]) {
      const mark = drawn("rect", { x: left + across.place(corner[0]) - 4, y: 226 - up.place(corner[1]), width: 8, height: 8, class: "corner" });
      mark.append(drawn("title", {}, name));
      chart.append(mark);
    }
    chart.append(drawn("text", { x: left, y: 20 }, one.name + ", " + percent(low) + " to " + percent(high)),
      drawn("circle", { cx: left + across.place(at[0]), cy: 230 - up.place(at[1]), r: 6,
        class: one.role === "source" ? "source" : "target" }),
      drawn("text", { x: left, y: 250 }, "→ " + route.methods[1] + "   ↑ " + route.methods[2]),
      drawn("text", { x: left, y: 268 }, "□ models; dark: " + percent(high) + ", light: " + percent(low)));
  });
  announce(languages, measured);
}

function announce(languages, measured) {
  const scores = languages.map((one) => {
    const score = scoreAt(one.scores, measured);
    return one.name + " " + (score === undefined ? "not measured" : percent(score));
  });
  const names = measured.length > 1 ? ["α₁", "α₂"] : ["α"];
  const place = measured.map((alpha, axis) => names[axis] + " = " + +alpha.toFixed(4)).join(", ");
  const here = distance(measured, point()) < 1e-6;
  const where = here ? "measured on " + route.split : "not measured here; measured on " + route.split + " at the nearest point, " + place;
  get("chart").setAttribute("aria-label", route.metric + " in percent: " + scores.join(", ") + " (" + where + ")");
  get("status").textContent = route.metric + ": " + scores.join(" · ") + " (" + where + ")";
}

function read(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.length > 1 ? lines : lines[0] || "";
}

function showAnswer(answer, gold) {
  const box = element("div");
  const labels = answer.labels || (answer.heads && answer.heads.map((head, number) =>
    answer.relations[number] + " ← " + (head ? answer.words[head - 1] : "root")));
  const right = gold && (gold.labels || (gold.heads && gold.heads.map((head, number) =>
    gold.relations[number] + " ← " + (head ? answer.words[head - 1] : "root"))));
  if (labels) {
    answer.words.forEach((word, number) => {
      const isWrong = right && labels[number] !== right[number];
      const label = element("small", labels[number] + (isWrong ? " ✗" : ""), !right ? "plain" : isWrong ? "wrong" : "");
      const box_of_word = element("span", word, "word");
      box_of_word.append(label);
      if (isWrong) box_of_word.append(element("small", "gold: " + right[number], "gold"));
      box.append(box_of_word);
    });
  } else {
    const text = String(answer.label ?? answer.answer ?? "");
    const expected = gold && String(gold.label ?? gold.answer ?? "");
    box.append(element("strong", text, expected === undefined || !gold || expected === text ? "" : "error"));
    if (gold && expected !== text) box.append(element("span", "  (gold: " + expected + ")", "soft"));
  }
  return box;
}

async function move() {
  drawChart();
  get("first-value").textContent = (+get("first").value).toFixed(2);
  get("second-value").textContent = (+get("second").value).toFixed(2);
  if (waiting) { again = true; return; }
  waiting = true;
  const started = performance.now(), number = ++asked;
  try {
    const text = read(get("text").value);
    const body = { route: route.id, point: point(), language: get("language").value };
    const sentences = shown, texts = [...(text.length ? [text] : []), ...sentences.map((sentence) => sentence.text)];
    const { answers } = texts.length ? await ask("answers", { ...body, texts }) : { answers: [] };
    if (number === asked && sentences === shown) {
      get("answer").replaceChildren(...(text.length ? [showAnswer(answers.shift())] : []));
      answers.forEach((answer, place) =>
        get("sentences").children[place].replaceChildren(showAnswer(answer, sentences[place].gold)));
    }
    get("answer").dataset.milliseconds = (performance.now() - started).toFixed(0);
  } catch (error) {
    get("answer").replaceChildren(element("p", error.message, "error"));
  }
  waiting = false;
  if (again) { again = false; move(); }
}

// All seeds below each other, under the words and their gold labels; what is wrong and where they differ is marked.
function seedsOf(example) {
  const seeds = Object.entries(example.answers), gold = example.gold.labels;
  const box = element("div", undefined, "wide"), table = element("table", undefined, "seeds");
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Answers of all seeds");
  box.append(table);
  const listed = seeds.every(([, answer]) => Array.isArray(answer)) && Array.isArray(gold);
  const row = (name, cells) => {
    const line = element("tr"), head = element("th", name);
    head.scope = "row";
    line.append(head, ...cells);
    table.append(line);
  };
  if (!listed) {
    const expected = example.gold.label ?? example.gold.answer;
    row("gold", [element("td", expected === undefined || expected === null ? "–" : String(expected))]);
    for (const [seed, answer] of seeds) {
      const text = answer !== null && typeof answer === "object" ? String(answer.label ?? answer.answer ?? JSON.stringify(answer)) : String(answer);
      row("seed " + seed, [element("td", text === String(expected) ? text : text + " ✗", text === String(expected) ? "" : "wrong")]);
    }
    return box;
  }
  const differs = gold.map((_, place) => new Set(seeds.map(([, answer]) => answer[place])).size > 1);
  const marked = (text, place, className) => element("td", text, [className, differs[place] ? "differs" : ""].join(" ").trim());
  row("word", String(example.text).split(" ").map((word, place) => marked(word, place, "unit")));
  row("gold", gold.map((label, place) => marked(label, place, "")));
  for (const [seed, answer] of seeds)
    row("seed " + seed, answer.map((label, place) =>
      marked(label === gold[place] ? label : label + " ✗", place, label === gold[place] ? "" : "wrong")));
  return box;
}

async function chooseLanguage() {
  const body = { route: route.id, language: get("language").value };
  const kept = route;
  shown = (await ask("sentences", body)).sentences.slice(0, 4);
  get("sentences").replaceChildren(...shown.map(() => element("li")));
  await move();
  const { examples, count } = await ask("disagreements", body);
  if (kept !== route) return;
  get("seeds-title").hidden = !examples.length;
  get("seeds-method").textContent = route.methods[0] + " (" + (count || 0) + " of the test set)";
  get("seeds").replaceChildren(...examples.map((example) => {
    const item = element("li"), button = element("button", [].concat(example.text).join(" / "));
    button.onclick = () => { get("text").value = [].concat(example.text).join("\n"); move(); get("text").focus(); };
    item.append(button);
    item.append(seedsOf(example));
    return item;
  }));
}

async function chooseRoute() {
  route = study.routes.find((one) => one.id === get("route").value);
  const plane = route.methods.length === 3;
  get("second-label").hidden = !plane;
  get("first-name").textContent = plane ? "₁ (" + route.methods[1] + ")" : "";
  get("second-name").textContent = plane ? " (" + route.methods[2] + ")" : "";
  get("language").replaceChildren(...route.languages.map((one) => new Option(one.name + " (" + one.code + ", " + one.role + ")", one.code)));
  const target = route.languages.find((one) => one.code === route.target) || route.languages[route.languages.length - 1];
  get("language").value = target.code;
  get("first").value = get("second").value = 0;
  await chooseLanguage();
}

function matrix(name, { first, second }, ranks) {
  const table = element("table"), head = element("tr");
  table.append(element("caption", name), head);
  head.append(element("td"), ...second.map((word) => element("th", word)));
  ranks.forEach((row, number) => {
    const line = element("tr");
    line.append(element("th", first[number]), ...row.map((rank) => element("td", rank, rank === 1 ? "best" : rank === 2 ? "second" : "")));
    table.append(line);
  });
  return table;
}

async function pairUp() {
  if (!get("pair-first").value.trim() || !get("pair-second").value.trim()) return;
  const body = { adjusted: get("adjusted").value, first: get("pair-first").value, second: get("pair-second").value };
  try {
    const words = await ask("words", body);
    get("before").replaceChildren(matrix("Original encoder", words, words.before));
    get("after").replaceChildren(matrix("Adjusted encoder", words, words.after));
    const kept = get("word").value;
    get("word").replaceChildren(...[...new Set(words.first)].map((word) => new Option(word, word)));
    if (words.first.includes(kept)) get("word").value = kept;
    await lookAround();
  } catch (error) {
    get("before").replaceChildren(element("p", error.message, "error"));
    get("after").replaceChildren();
  }
}

async function lookAround() {
  const body = { adjusted: get("adjusted").value, first: get("pair-first").value, word: get("word").value };
  try {
    const found = await ask("neighbours", body), table = element("table"), head = element("tr");
    head.append(...["layer", "original encoder", "adjusted encoder"].map((text) => element("th", text)));
    table.append(head);
    found.before.forEach((words, layer) => {
      const line = element("tr");
      line.append(element("th", layer), element("td", words.join(" "), "left"), element("td", found.after[layer].join(" "), "left"));
      table.append(line);
    });
    get("neighbours").replaceChildren(table);
  } catch (error) {
    get("neighbours").replaceChildren(element("p", error.message, "soft"));
  }
}

async function chooseAdjusted() {
  const { example } = study.adjusted.find((one) => one.id === get("adjusted").value);
  if (example.length) [get("pair-first").value, get("pair-second").value] = example;
  await pairUp();
}

function dragged(event) {
  const chart = get("chart");
  const at = pointAt(new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse()));
  at.forEach((alpha, axis) => { get(["first", "second"][axis]).value = alpha; });
  move();
}

async function start() {
  try {
    study = await ask("study");
    get("title").textContent = study.title;
    if (study.routes.length) {
      get("routes").hidden = false;
      get("route").replaceChildren(...study.routes.map((one) => new Option(
        one.methods.join(" → ") + ": " + one.corpus + " " + one.task + ", " + [one.source, one.target].filter(Boolean).join(" → ")
          + ", seed " + one.seed, one.id)));
      get("route").onchange = chooseRoute;
      get("language").onchange = chooseLanguage;
      for (const id of ["first", "second", "text"]) get(id).oninput = move;
      const chart = get("chart");
      chart.onpointerdown = (event) => {
        if (event.button) return;
        chart.setPointerCapture(event.pointerId);
        dragged(event);
      };
      chart.onpointermove = (event) => { if (chart.hasPointerCapture(event.pointerId)) dragged(event); };
      await chooseRoute();
    }
    if (study.adjusted.length) {
      get("pairs").hidden = false;
      get("adjusted").replaceChildren(...study.adjusted.map((one) => new Option(one.title, one.id)));
      get("adjusted").onchange = chooseAdjusted;
      get("word").onchange = lookAround;
      for (const id of ["pair-first", "pair-second"]) get(id).onchange = pairUp;
      await chooseAdjusted();
    }
  } catch (error) {
    get("status").replaceChildren(element("span", error.message, "error"));
  }
}
start();
