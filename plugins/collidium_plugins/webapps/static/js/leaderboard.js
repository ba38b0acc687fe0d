// Pagination of the leaderboard without navigation: prefetches the next page, and replaces only the table.
// Without scripts, or if anything fails, the links work as usual.

const places = document.querySelector("[data-places]");
const ahead = new Map();
let shown = location.pathname + location.search;

function fetchPage(address) {
  if (!ahead.has(address)) {
    const page = fetch(address, { headers: { Accept: "text/html" } }).then(async (answer) => {
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    });
    page.catch(() => ahead.delete(address));
    ahead.set(address, page);
  }
  return ahead.get(address);
}

async function show(address, { keep }) {
  places.setAttribute("aria-busy", "true");
  try {
    const page = await fetchPage(address);
    const found = page.querySelector("[data-places]");
    if (!found) throw new Error("no places");
    places.replaceChildren(...[...found.childNodes].map((node) => document.importNode(node, true)));
    ahead.clear();
    if (keep) history.pushState(null, "", address);
    shown = location.pathname + location.search;
    const table = places.querySelector(".table-box");
    document.querySelector("#board").scrollIntoView({ block: "start" });
    table?.focus({ preventScroll: true });
    prepare();
  } catch {
    location.assign(address);
  } finally {
    places.removeAttribute("aria-busy");
  }
}

function prepare() {
  const next = places.querySelector('a[rel="next"]');
  if (!next) return;
  const fetchAhead = () => fetchPage(next.href).catch(() => {});
  if ("requestIdleCallback" in window) requestIdleCallback(fetchAhead, { timeout: 2000 });
  else setTimeout(fetchAhead, 500);
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
if (places) {
  places.addEventListener("click", (event) => {
    const link = event.target.closest(".pager a");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    show(link.href, { keep: true });
  });
  addEventListener("popstate", () => {
    // Also sent for fragments of this page.
    if (location.pathname + location.search !== shown) show(location.href, { keep: false });
  });
  prepare();
}
