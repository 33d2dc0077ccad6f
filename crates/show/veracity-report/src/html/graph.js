// A drawing is moved with the pointer, made larger with Ctrl and the wheel or with the buttons, and
// searched. The wheel alone scrolls the page.

function viewOf(svg) {
  const { x, y, width, height } = svg.viewBox.baseVal;
  return { x, y, width, height };
}

function setView(svg, view) {
  svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  // What goes on above or below is reached with a finger, too.
  svg.classList.toggle("tall", view.height < svg.dataset.height);
}

// Makes what is shown larger around a point, which stays where it is.
function zoom(svg, factor, at) {
  const view = viewOf(svg);
  const whole = svg.dataset.width;
  const width = Math.min(Math.max(view.width / factor, whole / 20), whole * 4);
  const change = width / view.width;
  const centre = at ?? { x: view.x + view.width / 2, y: view.y + view.height / 2 };
  setView(svg, {
    x: centre.x - (centre.x - view.x) * change,
    y: centre.y - (centre.y - view.y) * change,
    width,
    height: view.height * change,
  });
}

function showAll(svg) {
  setView(svg, { x: 0, y: 0, width: Number(svg.dataset.width), height: Number(svg.dataset.height) });
}

// Names of ports are 12 units high, the smallest letters 10. Where all of it would make names smaller
// than 11 pixels, a part is shown first in which the smallest letters have 11: the beginning, or
// what is not proved.
function startReadable(svg) {
  const { width, height } = viewOf(svg);
  const box = svg.getBoundingClientRect();
  if (!box.width || 12 * Math.min(box.width / width, box.height / height) >= 11) return;
  const scale = 1.1;
  const most = parseFloat(getComputedStyle(svg).maxHeight) || box.height;
  const view = {
    width: Math.min(width, box.width / scale),
    height: Math.min(height, most / scale),
  };
  const wrong = svg.querySelector("a.disproved rect, a.not_comparable rect")?.getBBox();
  const start = (middle, part, whole) => Math.max(0, Math.min(middle - part / 2, whole - part));
  setView(svg, {
    ...view,
    x: wrong ? start(wrong.x + wrong.width / 2, view.width, width) : 0,
    y: wrong ? start(wrong.y + wrong.height / 2, view.height, height) : 0,
  });
}

function pointOf(svg, event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}

// A short movement is a click on what lies there.
function movable(svg) {
  let last = null;
  let at = null;
  let moved = 0;
  svg.addEventListener("pointerdown", (event) => {
    last = pointOf(svg, event);
    at = [event.clientX, event.clientY];
    moved = 0;
  });
  svg.addEventListener("pointermove", (event) => {
    if (!last || event.buttons === 0) return;
    const now = pointOf(svg, event);
    const view = viewOf(svg);
    moved += Math.abs(event.clientX - at[0]) + Math.abs(event.clientY - at[1]);
    at = [event.clientX, event.clientY];
    if (moved > 4) setView(svg, { ...view, x: view.x + last.x - now.x, y: view.y + last.y - now.y });
  });
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  svg.addEventListener("click", (event) => {
    if (moved > 4) event.preventDefault();
    last = null;
  }, true);
}

function search(graph, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const boxes = graph.querySelectorAll("svg a");
  let found = 0;
  for (const box of boxes) {
    const text = box.textContent.toLowerCase();
    const fits = wanted.every((word) => text.includes(word));
    box.classList.toggle("faded", !fits);
    found += fits;
  }
  graph.querySelector("output").textContent = wanted.length ? `${found} of ${boxes.length}` : "";
}

function choose(graph) {
  for (const box of graph.querySelectorAll("svg a")) {
    box.classList.toggle("chosen", box.getAttribute("href") === location.hash);
  }
}

for (const graph of document.querySelectorAll(".graph")) {
  const svg = graph.querySelector("svg");
  graph.querySelector(".controls").hidden = false;
  movable(svg);
  startReadable(svg);
  window.addEventListener("beforeprint", () => showAll(svg));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(svg, event.deltaY < 0 ? 1.15 : 1 / 1.15, pointOf(svg, event));
  }, { passive: false });
  const actions = {
    larger: () => zoom(svg, 1.3),
    smaller: () => zoom(svg, 1 / 1.3),
    all: () => showAll(svg),
  };
  for (const button of graph.querySelectorAll("button")) {
    button.addEventListener("click", actions[button.value]);
  }
  graph.querySelector("input").addEventListener("input", (event) => search(graph, event.target.value));
  window.addEventListener("hashchange", () => choose(graph));
  choose(graph);
}
