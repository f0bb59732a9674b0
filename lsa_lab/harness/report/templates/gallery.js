"use strict";
(() => {
  const form = document.getElementById("filters"), count = document.getElementById("count");
  const checked = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
  const show = () => {
    const papers = checked("paper"), verdicts = checked("verdict"), thin = checked("thin").size > 0;
    const kept = (cell) => papers.has(cell.dataset.paper || "none") && verdicts.has(cell.dataset.verdict) && (!thin || "thin" in cell.dataset);
    for (const cell of document.querySelectorAll(".claim")) cell.hidden = !kept(cell);
    for (const row of document.querySelectorAll("tr.headline")) row.hidden = !papers.has(row.dataset.paper || "none");
    for (const family of document.querySelectorAll(".family")) family.hidden = !family.querySelector(".claim:not([hidden])");
    let claims = 0, figures = 0;
    for (const article of document.querySelectorAll("article")) {
      const left = article.querySelectorAll(".claim:not([hidden])").length;
      article.hidden = left === 0;
      claims += left; figures += left > 0;
      document.querySelector(`[data-result="${article.id}"]`).hidden = left === 0;
    }
    for (const theme of document.querySelectorAll(".theme")) theme.hidden = !theme.querySelector("article:not([hidden])");
    count.value = `${claims} cells in ${figures} figures`;
  };
  form.hidden = false;
  form.addEventListener("change", show);
  show();
})();
