"use strict";
(() => {
  const form = document.getElementById("filters"), count = document.getElementById("count");
  if (!form) return;
  const rows = [...document.querySelectorAll(".row")];
  const texts = rows.map((row) => `${row.textContent} ${row.dataset.words || ""} ${row.title}`.toLowerCase());
  const allows = (name, value) => {
    const boxes = [...form.querySelectorAll(`[name=${name}]`)];
    return !boxes.length || value === undefined || boxes.some((box) => box.checked && box.value === value);
  };
  const show = () => {
    const words = form.words.value.toLowerCase().split(/\s+/), thin = form.querySelector("[name=thin]:checked");
    rows.forEach((row, i) => {
      const { paper, verdict } = row.dataset;
      row.hidden = !(words.every((word) => texts[i].includes(word)) && allows("paper", paper) && allows("verdict", verdict) && (!thin || "thin" in row.dataset));
    });
    for (const section of document.querySelectorAll("section")) section.hidden = !section.querySelector(".row:not([hidden])");
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} ${count.dataset.of}`;
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
