"use strict";
// Points of the front: a click on one, in the plot or in the table, shows what belongs to it. Without it all is shown.
(() => {
  const all = (query) => [...document.querySelectorAll(query)];
  const picks = all(".pick");
  const rows = all("#points tr[data-point]");
  const panels = all("[data-panel]");
  if (!picks.length) return;

  function show(number, focus) {
    for (const pick of picks) pick.setAttribute("aria-pressed", String(+pick.dataset.point === number));
    for (const row of rows) row.classList.toggle("on", +row.dataset.point === number);
    for (const panel of panels) panel.hidden = +panel.dataset.panel !== number;
    if (focus) picks[number].focus();
  }

  function pick(number, focus) {
    show(number, focus);
    history.replaceState(null, "", `#point-${number + 1}`);
  }

  for (const item of [...picks, ...rows]) {
    item.addEventListener("click", () => pick(+item.dataset.point, false));
  }
  for (const item of picks) {
    item.addEventListener("keydown", (event) => {
      const number = +item.dataset.point;
      const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0;
      if (!move && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(Math.max(0, Math.min(picks.length - 1, number + move)), true);
    });
  }
  const asked = /^#point-(\d+)$/.exec(location.hash);
  show(asked ? Math.max(0, Math.min(picks.length, +asked[1]) - 1) : 0, false);
})();
