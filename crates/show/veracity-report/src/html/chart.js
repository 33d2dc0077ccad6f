// What a point or a bar stands for is shown beside the pointer, and beside whatever has the focus. The
// nearest point counts: points are small.

const tip = document.createElement("div");
tip.className = "tip-box";
tip.setAttribute("role", "status");
tip.hidden = true;

// What is said about a mark. Its title goes, as the browser would show it a second time.
function said(mark) {
  const title = mark.querySelector("title");
  if (title) {
    mark.dataset.says = title.textContent;
    mark.closest("a")?.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  return mark.dataset.says ?? "";
}

function showTip(mark) {
  const lines = said(mark).split("; ").filter(Boolean);
  if (!lines.length) return;
  tip.replaceChildren(...lines.map((line) => {
    const part = document.createElement("div");
    part.textContent = line;
    return part;
  }));
  tip.hidden = false;
  const place = mark.getBoundingClientRect();
  const left = Math.min(place.right + 8, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const below = place.bottom + 8;
  const fits = below + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${fits ? below : Math.max(place.top - tip.offsetHeight - 8, 8)}px`;
}

function hideTip() {
  tip.hidden = true;
}

// The mark that is nearest to the pointer, if one is near.
function nearest(svg, event) {
  if (event.target.closest?.("rect")) return event.target.closest("rect");
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const reach = 14 / svg.getScreenCTM().a;
  let found = null;
  let least = reach * reach;
  svg.circles ??= Array.from(svg.querySelectorAll("circle"), (circle) => (
    [circle, circle.cx.baseVal.value, circle.cy.baseVal.value]));
  for (const [circle, x, y] of svg.circles) {
    const distance = (x - at.x) ** 2 + (y - at.y) ** 2;
    if (distance < least) [least, found] = [distance, circle];
  }
  return found;
}

document.body.append(tip);
for (const svg of document.querySelectorAll("svg.chart")) {
  svg.addEventListener("pointermove", (event) => {
    const mark = nearest(svg, event);
    if (mark) showTip(mark); else hideTip();
  });
  svg.addEventListener("pointerleave", hideTip);
  svg.addEventListener("click", (event) => {
    if (event.target.closest("a")) return;
    const link = nearest(svg, event)?.closest("a");
    if (link) location.hash = link.getAttribute("href");
  });
  svg.addEventListener("focusin", (event) => {
    const mark = event.target.querySelector("circle");
    if (mark) showTip(mark);
  });
  svg.addEventListener("focusout", hideTip);
}
