"use strict";
// Moves along the paths with the slider, and opens the part of the page that a link leads to.
(() => {
  const slider = document.getElementById("alpha");
  const show = () => {
    const at = Number(slider.value);
    const x = slider.dataset.x.split(" ")[at];
    const alpha = slider.dataset.alphas.split(" ")[at];
    const read = [];
    for (const panel of document.querySelectorAll(".path")) {
      const means = {};
      for (const line of panel.querySelectorAll("polyline")) {
        const point = line.points.getItem(at);
        const mark = line.nextElementSibling;
        mark.setAttribute("cx", point.x);
        mark.setAttribute("cy", point.y);
        (means[line.dataset.name] ||= []).push(Number(line.dataset.scores.split(" ")[at]));
      }
      panel.querySelector(".now").setAttribute("x1", x);
      panel.querySelector(".now").setAttribute("x2", x);
      for (const output of panel.querySelectorAll("output")) {
        const scores = means[output.dataset.name];
        output.textContent = (scores.reduce((sum, score) => sum + score, 0) / scores.length).toFixed(1);
        read.push(`${output.dataset.name} ${output.textContent}`);
      }
    }
    for (const row of document.querySelectorAll("tr[data-first]")) {
      row.hidden = at < Number(row.dataset.first) || at > Number(row.dataset.last);
    }
    document.getElementById("alpha-now").textContent = alpha;
    slider.setAttribute("aria-valuetext", `α ${alpha}: ${read.join(", ")}`);
  };
  if (slider) {
    slider.closest(".slider").hidden = false;
    slider.addEventListener("input", show);
    show();
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
