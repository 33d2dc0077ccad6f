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

// The rows of a table, or the entries of a list.
function entries(target) {
  return target.tBodies ? target.tBodies[0].rows : target.children;
}

function filter(controls) {
  const target = document.getElementById(controls.dataset.table);
  const words = controls.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = controls.querySelector(".which")?.value ?? "";
  let shown = 0;
  for (const entry of entries(target)) {
    const text = entry.textContent.toLowerCase();
    const fits = words.every((word) => text.includes(word)) &&
      (verdict === "" || entry.dataset.verdict === verdict);
    entry.hidden = !fits;
    shown += fits;
  }
  // The row on the way of the Tab key is one that can be seen.
  const rows = Array.from(target.tBodies ? target.tBodies[0].rows : []);
  if (!rows.some((row) => row.tabIndex === 0 && !row.hidden)) {
    for (const row of rows) row.tabIndex = -1;
    const first = rows.find((row) => !row.hidden);
    if (first) first.tabIndex = 0;
  }
  controls.querySelector("output").textContent = `${shown} of ${entries(target).length} shown`;
}

// Puts a list in order by what its entries say under a name: the largest error first, the rest up.
function putInOrder(list, name) {
  const text = name === "pass";
  const key = (entry) => (text ? entry.dataset[name] : Number(entry.dataset[name]));
  const keyed = Array.from(list.children, (entry) => [key(entry), entry]);
  keyed.sort((left, right) => inOrder(left[0], right[0], name === "error" ? -1 : 1));
  list.append(...keyed.map((pair) => pair[1]));
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

// One row of each table is on the way of the Tab key; arrows lead to the others, Enter follows the
// first link of a row.
function walkable(body) {
  const visible = () => Array.from(body.rows).filter((row) => !row.hidden);
  for (const row of body.rows) row.tabIndex = -1;
  if (body.rows.length) body.rows[0].tabIndex = 0;
  body.addEventListener("keydown", (event) => {
    const row = event.target;
    if (row.parentElement !== body) return;
    const rows = visible();
    const at = rows.indexOf(row);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Enter") row.querySelector("a[href]")?.click();
    if (!rows[next]) return;
    event.preventDefault();
    row.tabIndex = -1;
    rows[next].tabIndex = 0;
    rows[next].focus();
  });
}

// The way back from what a link opened.
let cameFrom = null;

function escapeKey(field) {
  if (field.matches("input[type=search]")) {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.blur();
    return;
  }
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = false;
  if (cameFrom) cameFrom.focus();
  cameFrom = null;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (link && !link.closest("nav")) cameFrom = link;
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") escapeKey(event.target);
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  const field = document.querySelector("input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
});
for (const body of document.querySelectorAll("tbody")) walkable(body);
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
for (const controls of document.querySelectorAll(".controls[data-table]")) {
  controls.hidden = false;
  controls.addEventListener("input", () => filter(controls));
  controls.querySelector(".order")?.addEventListener("change", (event) => {
    putInOrder(document.getElementById(controls.dataset.table), event.target.value);
  });
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
