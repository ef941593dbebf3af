// Enter sends; Escape closes what is open over the page, and stops the answer where nothing is.
import { closeDrawers } from "./drawers.js";
import { find } from "./dom.js";
import { closeMenus, closeTips } from "./menus.js";

document.addEventListener("keydown", (event) => {
  // Safari says that the composing is over before the key that ended it, which has this number there.
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Enter" && !event.shiftKey && event.target.id === "box") {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
  if (event.key === "Escape") escape(event.target);
});

function escape(target) {
  if (find("dialog[open], :popover-open")) return; // the browser closes it
  const menu = target.closest?.("details.pop[open]");
  if (closeTips(null) || closeDrawers()) return;
  if (closeMenus(document.body)) return void (menu && find("summary", menu).focus());
  if (document.body.classList.contains("answering")) find("#composer .stop")?.click();
}
