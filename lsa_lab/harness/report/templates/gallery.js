"use strict";
(() => {
  const form = document.getElementById("filters"), count = document.getElementById("count");
  const checked = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
  const show = () => {
    const papers = checked("paper"), verdicts = checked("verdict"), thin = checked("thin").size > 0;
    const kept = (row) => papers.has(row.dataset.paper || "none") && verdicts.has(row.dataset.verdict) && (!thin || "thin" in row.dataset);
    for (const row of document.querySelectorAll("tr.claim")) row.hidden = !kept(row);
    for (const row of document.querySelectorAll("tr.headline")) row.hidden = !papers.has(row.dataset.paper || "none");
    for (const message of document.querySelectorAll("article tbody")) message.hidden = !message.querySelector("tr.claim:not([hidden])");
    let claims = 0, figures = 0;
    for (const article of document.querySelectorAll("article")) {
      const left = article.querySelectorAll("tr.claim:not([hidden])").length;
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
