// Tiles and windows: a slider moves every map of a group to another moment. Without it the middle one is shown.
(() => {
  for (const group of document.querySelectorAll(".fusion-group[data-moments]")) {
    const captions = JSON.parse(group.dataset.moments);
    const [slider, button, output] = ["input", "button", "output"].map((kind) => group.querySelector(kind));
    const maps = [...group.querySelectorAll(".feature-map")].map((svg) => {
      const frames = JSON.parse(svg.dataset.f);
      frames.forEach((frame, i) => { if (!frame) frames[i] = frames[i - 1]; });
      return { frames, marks: [...svg.querySelectorAll(".mark")], sheets: [...svg.querySelectorAll(".sheet")].reverse() };
    });

    function show(moment) {
      for (const { frames, marks, sheets } of maps) {
        const frame = frames[moment];
        marks.forEach((mark, i) => {
          ["x", "y", "width", "height"].forEach((name, j) => mark.setAttribute(name, frame[i][j]));
        });
        const [first, stop] = frame[frame.length - 1];
        sheets.forEach((sheet, i) => sheet.classList.toggle("lit", first <= i && i < stop));
      }
      slider.value = moment;
      output.textContent = captions[moment];
      slider.setAttribute("aria-valuetext", captions[moment]);
    }

    let timer = null;
    function stop() {
      clearInterval(timer);
      timer = null;
      button.textContent = "play";
    }
    slider.addEventListener("input", () => { stop(); show(+slider.value); });
    button.addEventListener("click", () => {
      if (timer) { stop(); return; }
      button.textContent = "pause";
      if (+slider.value === captions.length - 1) show(0);
      timer = setInterval(() => {
        const next = +slider.value + 1;
        if (next < captions.length) show(next);
        else stop();
      }, Math.max(120, Math.min(700, 6000 / captions.length)));
    });
    group.querySelector(".player").hidden = captions.length < 2;
  }
})();
