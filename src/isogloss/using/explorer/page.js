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

function between(scores, alpha) {
  const upper = scores.findIndex((row) => row[0] >= alpha);
  if (upper < 0) return scores[scores.length - 1][1];
  if (upper === 0 || scores[upper][0] === alpha) return scores[upper][1];
  const [low, high] = [scores[upper - 1], scores[upper]];
  return low[1] + (high[1] - low[1]) * (alpha - low[0]) / (high[0] - low[0]);
}

function nearest(scores, [first, second]) {
  const far = (row) => Math.abs(row[0] - first) + Math.abs(row[1] - second);
  return scores.reduce((best, row) => (far(row) < far(best) ? row : best));
}

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
  const ends = languages.map((one) => y(one.scores[one.scores.length - 1][1]) + 4);
  if (ends.length > 1 && Math.abs(ends[0] - ends[1]) < 14) ends[ends[0] > ends[1] ? 0 : 1] = Math.min(...ends) + 14;
  languages.forEach((one, number) => {
    const line = one.scores.map((row, number) => (number ? "L" : "M") + x(row[0]).toFixed(1) + " " + y(row[1]).toFixed(1));
    const score = between(one.scores, alpha), role = one.role === "source" ? "source" : "target";
    chart.append(drawn("path", { d: line.join(""), class: role }),
      drawn("circle", { cx: x(alpha), cy: y(score), r: 5, class: role }),
      drawn("text", { x: right + 6, y: ends[number], class: role }, one.name));
  });
  announce(languages.map((one) => one.name + " " + percent(between(one.scores, alpha))));
}

function drawPlane(chart, languages) {
  const [first, second] = point();
  const sides = languages.map((one) => [...new Set(one.scores.map((row) => row[0]))]);
  chart.setAttribute("viewBox", "0 0 640 280");
  languages.forEach((one, number) => {
    const values = sides[number], size = 200 / values.length, left = 60 + 300 * number;
    const scores = one.scores.map((row) => row[2]), low = Math.min(...scores), high = Math.max(...scores);
    const at = (alpha, start, turned) => start + (turned ? 200 - 200 * place(values, alpha) : 200 * place(values, alpha));
    one.scores.forEach((row) => chart.append(drawn("rect", {
      x: left + size * values.indexOf(row[0]), y: 30 + 200 - size * (values.indexOf(row[1]) + 1), width: size + 0.5,
      height: size + 0.5, fill: "currentColor", "fill-opacity": (0.05 + 0.75 * (row[2] - low) / (high - low || 1)).toFixed(3) })));
    chart.append(drawn("text", { x: left, y: 20 }, one.name + ", " + percent(low) + " to " + percent(high)),
      drawn("circle", { cx: at(first, left), cy: at(second, 30, true), r: 6, class: one.role === "source" ? "source" : "target" }),
      drawn("text", { x: left, y: 250 }, "→ " + route.methods[1] + "   ↑ " + route.methods[2]));
  });
  announce(languages.map((one) => one.name + " " + percent(nearest(one.scores, point())[2])));
}

const place = (values, alpha) => (alpha - values[0]) / (values[values.length - 1] - values[0]);

function announce(scores) {
  get("chart").setAttribute("aria-label", route.metric + " in percent at this point: " + scores.join(", "));
  get("status").textContent = route.metric + ": " + scores.join(" · ") + " (measured on dev)";
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
