"use strict";
const token = new URLSearchParams(location.search).get("token") || "";
const get = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let study = null, route = null, shown = [], asked = 0, waiting = false, again = false;

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
  const lowest = Math.floor(10 * Math.min(...languages.flatMap((one) => one.scores.map((row) => row[1])))) / 10;
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
  return { place, cell: (value) => ends.slice(values.indexOf(value), values.indexOf(value) + 2) };
}

function drawPlane(chart, languages) {
  const at = point(), measured = nearest(languages[0].scores, at).slice(0, 2);
  chart.setAttribute("viewBox", "0 0 640 280");
  languages.forEach((one, number) => {
    const [across, up] = [0, 1].map((axis) => cellsOf([...new Set(one.scores.map((row) => row[axis]))].sort((a, b) => a - b)));
    const left = 60 + 300 * number, scores = one.scores.map((row) => row[2]);
    const low = Math.min(...scores), high = Math.max(...scores);
    for (const row of one.scores) {
      const [x1, x2] = across.cell(row[0]), [y1, y2] = up.cell(row[1]);
      chart.append(drawn("rect", {
        x: left + x1, y: 230 - y2, width: x2 - x1 + 0.5, height: y2 - y1 + 0.5, fill: "currentColor",
        "fill-opacity": (0.05 + 0.75 * (row[2] - low) / (high - low || 1)).toFixed(3),
        class: distance(row, measured) < 1e-6 ? "measured" : "" }));
    }
    chart.append(drawn("text", { x: left, y: 20 }, one.name + ", " + percent(low) + " to " + percent(high)),
      drawn("circle", { cx: left + across.place(at[0]), cy: 230 - up.place(at[1]), r: 6,
        class: one.role === "source" ? "source" : "target" }),
      drawn("text", { x: left, y: 250 }, "→ " + route.methods[1] + "   ↑ " + route.methods[2]));
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
      const label = element("small", labels[number], !right ? "plain" : labels[number] === right[number] ? "" : "wrong");
      if (right && labels[number] !== right[number]) label.title = "gold: " + right[number];
      const box_of_word = element("span", word, "word");
      box_of_word.append(label);
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
    if (text.length) get("answer").replaceChildren(showAnswer((await ask("answer", { ...body, text })).answer));
    else get("answer").replaceChildren();
    for (const [place, sentence] of shown.entries()) {
      if (number !== asked || again) break;
      const { answer } = await ask("answer", { ...body, text: sentence.text });
      get("sentences").children[place].replaceChildren(showAnswer(answer, sentence.gold));
    }
    get("answer").dataset.milliseconds = (performance.now() - started).toFixed(0);
  } catch (error) {
    get("answer").replaceChildren(element("p", error.message, "error"));
  }
  waiting = false;
  if (again) { again = false; move(); }
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
    for (const [seed, answer] of Object.entries(example.answers))
      item.append(element("div", "seed " + seed + ": " + (Array.isArray(answer) ? answer.join(" ") : JSON.stringify(answer)), "soft"));
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

function matrix(name, { first, second }, cosines) {
  const table = element("table"), head = element("tr");
  table.append(element("caption", name), head);
  head.append(element("th"), ...second.map((word) => element("th", word)));
  cosines.forEach((row, number) => {
    const line = element("tr");
    line.append(element("th", first[number]), ...row.map((value) =>
      element("td", value.toFixed(2), value === Math.max(...row) ? "best" : "")));
    table.append(line);
  });
  return table;
}

async function pairUp() {
  if (!get("pair-first").value.trim() || !get("pair-second").value.trim()) return;
  const body = { adjusted: get("adjusted").value, first: get("pair-first").value, second: get("pair-second").value };
  try {
    const words = await ask("words", body);
    get("before").replaceChildren(matrix("Before: cosine of states", words, words.before));
    get("after").replaceChildren(matrix("After", words, words.after));
  } catch (error) {
    get("before").replaceChildren(element("p", error.message, "error"));
    get("after").replaceChildren();
  }
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
      await chooseRoute();
    }
    if (study.adjusted.length) {
      get("pairs").hidden = false;
      get("adjusted").replaceChildren(...study.adjusted.map((one) => new Option(one.title, one.id)));
      for (const id of ["adjusted", "pair-first", "pair-second"]) get(id).onchange = pairUp;
    }
  } catch (error) {
    get("status").replaceChildren(element("span", error.message, "error"));
  }
}
start();
