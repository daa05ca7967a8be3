"use strict";
// Moves along the paths with the slider or by dragging the line, and opens the part of the page that a link leads to.
(() => {
  const figure = document.querySelector(".moving");
  if (figure) {
    const sliders = [...figure.querySelectorAll("input[type=range]")];
    const alphas = sliders[0].dataset.alphas.split(" ");
    const distance = (index, value) => Math.abs(alphas[index] - value);
    const nearest = (value) =>
      alphas.reduce((best, _, index) => (distance(index, value) < distance(best, value) ? index : best), 0);
    let at = nearest(sliders[0].value);

    const movePanel = (panel) => {
      const alpha = alphas[at];
      for (const line of panel.querySelectorAll("polyline")) {
        const point = line.dataset.alphas.split(" ").indexOf(alpha);
        const dot = line.nextElementSibling;
        dot.toggleAttribute("hidden", point < 0);
        if (point >= 0) {
          dot.setAttribute("cx", line.points.getItem(point).x);
          dot.setAttribute("cy", line.points.getItem(point).y);
        }
      }
      const slider = panel.querySelector("input");
      slider.value = alpha;
      slider.setAttribute("aria-valuetext", `α ${alpha}`);
      panel.querySelector(".slider b").textContent = alpha;
      const [left, right] = axisOf(panel);
      const x = left + ((alpha - slider.min) / (slider.max - slider.min || 1)) * (right - left);
      panel.querySelector(".now").setAttribute("x1", x);
      panel.querySelector(".now").setAttribute("x2", x);
      for (const mean of panel.querySelectorAll(".readout b")) {
        mean.textContent = mean.dataset.means.split(" ")[at];
      }
      for (const range of panel.querySelectorAll(".readout small")) {
        range.textContent = range.dataset.ranges.split("|")[at];
      }
    };
    const axisOf = (panel) => ["x1", "x2"].map((end) => Number(panel.querySelector(".grid").getAttribute(end)));

    // Each language once: the source has a score in each panel.
    const inWords = () => {
      const scores = new Map();
      for (const mean of figure.querySelectorAll(".readout b")) {
        const name = mean.dataset.name;
        scores.set(name, [...(scores.get(name) || []), ...(mean.textContent === "–" ? [] : [mean.textContent])]);
      }
      const texts = [...scores].map(([name, found]) => {
        const sorted = [...new Set(found)].sort((first, second) => first - second);
        const range = sorted.length > 1 ? `${sorted[0]} to ${sorted[sorted.length - 1]}` : sorted[0];
        return `${name} ${range || "not measured here"}`;
      });
      return `α ${alphas[at]}: ${texts.join(", ")}`;
    };

    const move = (index) => {
      at = Math.max(0, Math.min(alphas.length - 1, index));
      figure.querySelectorAll(".path").forEach(movePanel);
      for (const row of figure.querySelectorAll(".sentence ol, .compared table")) {
        row.hidden = Number(alphas[at]) < row.dataset.first || Number(alphas[at]) > row.dataset.last;
      }
    };
    const say = () => {
      figure.querySelector("[role=status]").textContent = inWords();
    };

    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    let held = false;
    for (const slider of sliders) {
      slider.closest(".slider").hidden = false;
      slider.addEventListener("pointerdown", () => (held = true));
      for (const end of ["pointerup", "pointercancel"]) slider.addEventListener(end, () => (held = false));
      slider.addEventListener("keydown", (event) => {
        if (!(event.key in steps)) return;
        event.preventDefault();
        move(at + steps[event.key]);
        say();
      });
      slider.addEventListener("input", () => {
        const value = slider.value, index = nearest(value);
        // A step of a key or a screen reader that reaches no other point leads to the next one.
        move(held || index !== at ? index : at + Math.sign(value - alphas[at]));
        say();
      });
      const drawing = slider.closest(".path").querySelector("svg");
      const drag = (event) => {
        const [left, right] = axisOf(slider.closest(".path"));
        const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse()).x;
        move(nearest(Number(slider.min) + ((x - left) / (right - left)) * (slider.max - slider.min)));
        say();
      };
      drawing.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        drawing.setPointerCapture(event.pointerId);
        drag(event);
      });
      drawing.addEventListener("pointermove", (event) => {
        if (drawing.hasPointerCapture(event.pointerId)) drag(event);
      });
    }
    figure.classList.add("draggable");
    move(at);
  }
  const open = () => {
    const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = part && part.closest("details"); box; box = box.parentElement.closest("details")) {
      box.open = true;
    }
    if (part) part.scrollIntoView();
  };
  addEventListener("hashchange", open);
  if (location.hash) open();
})();
