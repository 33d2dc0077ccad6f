"use strict";
// Tables are sorted by their heads and filtered by what is typed; everything is in the page already.

// What a cell is sorted by: a number that stands beside it, or its text.
function sortKey(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
}

// NaN stands behind every number, in both directions.
function inOrder(left, right, direction) {
  if (typeof left === "string") return direction * left.localeCompare(right);
  if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
  return direction * (left < right ? -1 : left > right ? 1 : 0);
}

function sortBy(head) {
  const table = head.closest("table");
  const column = head.cellIndex;
  const first = head.classList.contains("number") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const direction = order === "ascending" ? 1 : -1;
  const keyed = Array.from(table.tBodies[0].rows, (row) => [sortKey(row, column), row]);
  keyed.sort((left, right) => inOrder(left[0], right[0], direction));
  table.tBodies[0].append(...keyed.map((pair) => pair[1]));
}

function filter(controls) {
  const table = document.getElementById(controls.dataset.table);
  const words = controls.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = controls.querySelector("select").value;
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const fits = words.every((word) => text.includes(word)) &&
      (verdict === "" || row.dataset.verdict === verdict);
    row.hidden = !fits;
    shown += fits;
  }
  controls.querySelector("output").textContent = `${shown} of ${table.tBodies[0].rows.length} shown`;
}

// What an address leads to is shown, even if it was filtered away or is folded.
function reveal() {
  let target;
  try {
    target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return; // An address that somebody mistyped.
  }
  if (!target) return;
  const folded = [];
  for (let at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS" && !at.open) folded.push(at);
  }
  for (const each of folded) each.open = true;
  if (!target.hidden && folded.length === 0) return;
  target.hidden = false;
  target.scrollIntoView({ block: "center" });
}

// The theme is the system's until the button says otherwise. A file may not be allowed to remember.
function remembered() {
  try {
    return localStorage.getItem("veracity-theme");
  } catch {
    return null;
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("veracity-theme", theme);
  } catch {
    // Then it holds for as long as the page is open.
  }
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
for (const controls of document.querySelectorAll(".controls[data-table]")) {
  controls.hidden = false;
  controls.addEventListener("input", () => filter(controls));
  filter(controls);
}
for (const button of document.querySelectorAll(".theme")) {
  button.hidden = false;
  button.addEventListener("click", switchTheme);
}
if (["light", "dark"].includes(remembered())) setTheme(remembered());
// Paper has no folds.
window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
window.addEventListener("hashchange", reveal);
reveal();
