"use strict";
// Asks for changes, one question after the other, and loads again what has changed. A page that is
// loaded again keeps its place, its theme aside.
(() => {
  const above = document.getElementById("above");
  const lost = document.getElementById("lost");
  const frames = Array.from(document.querySelectorAll("iframe"));
  let version = document.body.dataset.version;
  let pages = document.body.dataset.pages.split(" ");

  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  }

  async function follow() {
    const numbers = (await ask(`changes?since=${version}`)).split(" ").filter(Boolean);
    lost.hidden = true;
    if (numbers.length === 0) return;
    const now = numbers.slice(1);
    if (now.length !== frames.length) {
      location.reload();
      return;
    }
    above.innerHTML = await ask("above");
    frames.forEach((frame, index) => {
      if (now[index] !== pages[index]) frame.contentWindow.location.reload();
    });
    version = numbers[0];
    pages = now;
  }

  async function watch() {
    for (;;) {
      try {
        await follow();
      } catch {
        lost.hidden = false;
        await new Promise((done) => setTimeout(done, 2000));
      }
    }
  }

  watch();
})();
