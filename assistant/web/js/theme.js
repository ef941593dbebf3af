// Light or dark, as it was chosen, else as the system has it.
import { onClick } from "./actions.js";

const KEPT = "sequitur-theme";

onClick("themeSwitch", () => theme(document.body.classList.contains("dark") ? "light" : "dark"));

function theme(name) {
  document.body.classList.toggle("dark", name === "dark");
  localStorage.setItem(KEPT, name);
}

// Gradio takes the system's theme as it starts and whenever that changes; the one that was chosen comes after it.
function keepTheme() {
  const chosen = localStorage.getItem(KEPT);
  if (chosen) setTimeout(() => theme(chosen), 0);
}

keepTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", keepTheme);
