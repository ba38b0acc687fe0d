// On every page: the theme switch, the account menu, and copy buttons.

import { inCredits } from "./credits.js";

const THEMES = ["", "light", "dark"];
const NAMES = { "": "as the system", light: "light", dark: "dark" };

function prepareThemeSwitch(button) {
  const root = document.documentElement;
  const label = () => {
    const text = `Colours: ${NAMES[root.dataset.theme ?? ""]}`;
    button.setAttribute("aria-label", text);
    button.title = text;
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      if (next) localStorage.setItem("theme", next);
      else localStorage.removeItem("theme");
    } catch {
      // Storage is disabled: the theme applies to this page only.
    }
    label();
  });
  label();
}

function prepareMenu(menu) {
  const credits = menu.querySelector("[data-credits]");
  menu.addEventListener("toggle", () => {
    if (menu.open && credits) showCredits(credits);
  });
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

async function showCredits(place) {
  try {
    const answer = await fetch("/web/balance", { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const { credits } = await answer.json();
    place.textContent = inCredits(credits);
  } catch {
    place.textContent = "credits are not available now";
  }
}

function prepareCopying(block) {
  const button = block.querySelector(".copy");
  const text = block.querySelector("pre");
  if (!button || !text || !navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent.trim());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

document.querySelectorAll(".theme-switch").forEach(prepareThemeSwitch);
document.querySelectorAll(".site-header .menu").forEach(prepareMenu);
document.querySelectorAll(".code").forEach(prepareCopying);
