// Runs before the first paint, so that no page flashes in the wrong theme.
(() => {
  const root = document.documentElement;
  root.dataset.scripts = "";
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage is disabled: use the system's theme.
  }
})();
