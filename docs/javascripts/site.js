// The theme puts tables into boxes that scroll and adds bars of buttons to code. Both get a name
// and, where they scroll, a place in the order of the Tab key.
function nameBoxes() {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((box, index) => {
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `table ${index + 1}`);
    box.tabIndex = 0;
  });
  document.querySelectorAll(".md-code__nav").forEach((bar, index) => {
    bar.setAttribute("aria-label", `code ${index + 1}`);
  });
}
new MutationObserver(nameBoxes).observe(document.body, { childList: true, subtree: true });
nameBoxes();
