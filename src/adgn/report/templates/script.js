// Browsers that do not open a closed element when a link leads into it: the page works without this too.
function reveal() {
  const id = decodeURIComponent(location.hash.slice(1));
  let place = id && document.getElementById(id);
  if (!place) return;
  const target = place;
  for (; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
  target.scrollIntoView();
}
// A table that is wider than its place says so.
function mark() {
  for (const place of document.querySelectorAll(".scroll"))
    place.classList.toggle("wide", place.scrollWidth > place.clientWidth);
}
addEventListener("hashchange", reveal);
addEventListener("resize", mark);
addEventListener("toggle", mark, true);
reveal();
mark();
