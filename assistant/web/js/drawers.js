// The panel and the sidebar, which are drawers on smaller screens.
import { onClick, pressable } from "./actions.js";
import { all, find } from "./dom.js";

const phone = () => matchMedia("(max-width: 1099px)").matches;

// Shows a tab of the panel.
export function openPanel(tab) {
  document.getElementById(`${tab}-tab-button`)?.click();
  if (phone()) setDrawer("panel", true);
}

function setDrawer(name, open) {
  closeDrawers();
  document.body.classList.toggle(`show-${name}`, open);
  find(`[data-drawer=${name}]`)?.setAttribute("aria-expanded", String(open));
  if (open) find(`#${name} button, #${name} input`)?.focus({ preventScroll: true });
}

export function closeDrawers() {
  const open = all("[data-drawer][aria-expanded=true]");
  document.body.classList.remove("show-side", "show-panel");
  open.forEach((button) => button.setAttribute("aria-expanded", "false"));
  open[0]?.focus();
  return open.length > 0;
}

onClick("panel", (link) => openPanel(link.dataset.panel));
onClick("drawer", ({ dataset: { drawer } }) => setDrawer(drawer, !document.body.classList.contains(`show-${drawer}`)));

document.addEventListener("click", (event) => {
  if (event.target.closest?.("#main") && !pressable(event)) closeDrawers();
});
