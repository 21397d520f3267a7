"use strict";
// Brushes filter candidates in all plots at once; a click on a point of the front shows what belongs to it.
(() => {
  const all = (query) => [...document.querySelectorAll(query)];
  const marked = all("[data-id]");
  const panels = all("[data-panel]");
  const picks = all("[data-pick]");
  const brushes = new Map(); // the area's element -> the range in the plot's own units
  const clear = document.querySelector("#clear");
  const others = document.querySelector("#others");
  const output = document.querySelector("#shown");
  const lines = all(".parallel .line");

  function isInside(line, area, range) {
    if ("axis" in area.dataset) {
      const y = +line.dataset.y.split(" ")[+area.dataset.axis];
      return range.y0 <= y && y <= range.y1;
    }
    const dot = area.ownerSVGElement.querySelector(`.dot[data-id="${line.dataset.id}"]`);
    const x = +dot.getAttribute("cx"), y = +dot.getAttribute("cy");
    return range.x0 <= x && x <= range.x1 && range.y0 <= y && y <= range.y1;
  }

  function filter() {
    const shown = new Set();
    for (const line of lines) {
      const isWanted = others.checked || line.classList.contains("of-front");
      if (isWanted && [...brushes].every(([area, range]) => isInside(line, area, range))) shown.add(line.dataset.id);
    }
    const isAll = shown.size === lines.length;
    for (const item of marked) item.classList.toggle("off", !isAll && !shown.has(item.dataset.id));
    output.textContent = `${shown.size} of ${lines.length}`;
    clear.hidden = !brushes.size;
  }

  function place(area, event) {
    const svg = area.ownerSVGElement;
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  }

  for (const area of all(".brushable")) {
    const isAxis = "axis" in area.dataset;
    const box = { x: area.x.baseVal.value, y: area.y.baseVal.value };
    box.x1 = box.x + area.width.baseVal.value;
    box.y1 = box.y + area.height.baseVal.value;
    const brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    brush.setAttribute("class", "brush");
    let start = null;

    const within = (value, low, high) => Math.max(low, Math.min(high, value));
    function draw(range) {
      brush.setAttribute("x", range.x0);
      brush.setAttribute("y", range.y0);
      brush.setAttribute("width", range.x1 - range.x0);
      brush.setAttribute("height", range.y1 - range.y0);
    }
    area.addEventListener("pointerdown", (event) => {
      start = place(area, event);
      area.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    area.addEventListener("pointermove", (event) => {
      if (!start) return;
      const end = place(area, event);
      if (Math.abs(end.y - start.y) < 3 && Math.abs(end.x - start.x) < 3) return;
      const xs = isAxis ? [box.x, box.x1] : [start.x, end.x].map((x) => within(x, box.x, box.x1));
      const ys = [start.y, end.y].map((y) => within(y, box.y, box.y1));
      const range = { x0: Math.min(...xs), x1: Math.max(...xs), y0: Math.min(...ys), y1: Math.max(...ys) };
      brushes.set(area, range);
      area.after(brush);
      draw(range);
      filter();
    });
    area.addEventListener("pointerup", (event) => {
      const end = place(area, event);
      const isClick = start && Math.abs(end.y - start.y) < 3 && Math.abs(end.x - start.x) < 3;
      start = null;
      if (!isClick) return;
      brushes.delete(area);
      brush.remove();
      filter();
    });
    area.clearBrush = () => brush.remove();
  }
  clear.addEventListener("click", () => {
    for (const area of brushes.keys()) area.clearBrush();
    brushes.clear();
    filter();
  });
  others.addEventListener("change", filter);

  function show(number) {
    for (const item of picks) item.setAttribute("aria-pressed", String(item.dataset.pick === number));
    for (const row of all("#points tr[data-id]")) row.classList.toggle("on", row.dataset.id === number);
    for (const panel of panels) panel.hidden = panel.dataset.panel !== number;
  }
  for (const item of picks) {
    const pick = () => {
      show(item.dataset.pick);
      history.replaceState(null, "", `#point-${item.dataset.pick}`);
    };
    item.addEventListener("click", pick);
    item.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick();
    });
  }
  if (panels.length) {
    const asked = /^#point-(\d+)$/.exec(location.hash)?.[1];
    show(panels.some((panel) => panel.dataset.panel === asked) ? asked : panels[0].dataset.panel);
  }
  filter();
})();
