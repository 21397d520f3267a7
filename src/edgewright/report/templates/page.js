"use strict";
// Sorting, filtering, and the ties between the map and the tables. Without it the page still shows everything.
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const one = (query, root = document) => root.querySelector(query);

  // Tables: a click on a head sorts, numbers from the largest; the box above filters by words.
  const value = (row, i) => row.cells[i].textContent.trim();
  const number = (text) => parseFloat(text.replace(/,/g, "")) || 0;
  for (const table of all("table.sortable")) {
    for (const button of all("th button", table)) {
      button.addEventListener("click", () => {
        const head = button.parentElement;
        const numeric = head.classList.contains("n");
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : numeric && head.cellIndex > 0;
        all("th", table).forEach((th) => th.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const compare = (a, b) => {
          const [x, y] = [value(a, head.cellIndex), value(b, head.cellIndex)];
          return numeric ? number(x) - number(y) : x.localeCompare(y, "en", { numeric: true });
        };
        const rows = all("tbody tr", table).sort((a, b) => (down ? compare(b, a) : compare(a, b)));
        table.tBodies[0].append(...rows);
      });
    }
  }
  for (const box of all("input[type=search]")) {
    const rows = all("tbody tr", box.closest("section"));
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
      }
    });
  }

  const svg = one("svg.memory-map");
  const tip = one(".tip");
  const readout = one(".readout");
  const stageRows = new Map(all("tr[data-s]").map((row) => [+row.dataset.s, row]));
  const buffers = all(".b[data-b]", svg).sort((a, b) => a.dataset.b - b.dataset.b);
  const { x0, step, stages } = svg.dataset;
  let pinned = null;

  // A title shows late and not at all with a keyboard: its text moves into our own tooltip.
  for (const buffer of buffers) {
    const title = one("title", buffer);
    buffer.tip = title.textContent;
    buffer.setAttribute("aria-label", title.textContent.replace(/\n/g, ", "));
    buffer.setAttribute("role", "img");
    buffer.setAttribute("tabindex", buffer === buffers[0] ? "0" : "-1");
    title.remove();
  }

  function showTip(buffer, x, y) {
    tip.hidden = !buffer;
    if (!buffer) return;
    tip.textContent = buffer.tip;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  }

  function showBuffer(id) {
    for (const item of all("tr[data-b], .b[data-b]")) {
      item.classList.toggle("on", item.dataset.b === id);
    }
  }

  function showStage(stage) {
    const shown = stage ?? pinned;
    for (const [at, row] of stageRows) {
      row.classList.toggle("on", at === shown);
      row.classList.toggle("pinned", at === pinned);
    }
    for (const column of all(".column", svg)) {
      column.style.visibility = shown === null ? "hidden" : "visible";
      if (shown !== null) column.setAttribute("x", +x0 + shown * step);
    }
    const row = stageRows.get(shown);
    const cells = row ? [...row.cells].map((cell) => cell.innerText.replace(/\n/g, " + ")) : [];
    readout.textContent = row
      ? `Stage ${cells[0]} · ${cells[1]} · ${cells[2]} · ${cells[3]} · ${cells[6]} B live${cells[8] && ` · ${cells[8]}`}`
      : readout.dataset.idle;
  }

  function pin(stage, scroll) {
    pinned = pinned === stage ? null : stage;
    showStage(null);
    const row = stageRows.get(pinned);
    if (row && scroll) {
      const box = row.closest(".scroll");
      box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
    }
  }

  function stageAt(event) {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    const stage = Math.floor((x - x0) / step);
    return stage >= 0 && stage < stages && stageRows.has(stage) ? stage : null;
  }

  svg.addEventListener("pointermove", (event) => {
    const buffer = event.target.closest(".b[data-b]");
    showStage(stageAt(event));
    showBuffer(buffer?.dataset.b);
    showTip(buffer, event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => { showStage(null); showBuffer(); showTip(null); });
  svg.addEventListener("click", (event) => {
    const stage = stageAt(event);
    if (stage !== null) pin(stage, true);
  });
  svg.addEventListener("focusin", (event) => {
    const box = event.target.getBoundingClientRect();
    showBuffer(event.target.dataset.b);
    showTip(event.target, box.left, box.top);
  });
  svg.addEventListener("focusout", () => { showBuffer(); showTip(null); });
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = buffers[buffers.indexOf(event.target) + move];
    if (!next) return;
    event.preventDefault();
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });

  for (const [stage, row] of stageRows) {
    row.addEventListener("pointerenter", () => showStage(stage));
    row.addEventListener("pointerleave", () => showStage(null));
    row.addEventListener("click", () => pin(stage, false));
  }
  for (const row of all("tr[data-b]")) {
    row.addEventListener("pointerenter", () => showBuffer(row.dataset.b));
    row.addEventListener("pointerleave", () => showBuffer());
  }
  showStage(null);
})();
