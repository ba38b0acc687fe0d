// Runs before the first paint, so that a page never flashes in the theme that was not chosen.
(() => {
  const root = document.documentElement;
  root.dataset.scripts = "";
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Where nothing may be kept, the system's theme it is.
  }
})();
