// Pages of their own are plain HTML. They are light or dark as the page was chosen to be (`theme.js`), else as the system
// has it; no module, so that nothing is drawn before that.
const system = matchMedia("(prefers-color-scheme: dark)");

function shade() {
  const chosen = localStorage.getItem("sequitur-theme");
  document.documentElement.classList.toggle("dark", chosen ? chosen === "dark" : system.matches);
}

shade();
system.addEventListener("change", shade);
