// Menus and tips: small sheets that open over the page and close when something else is pressed.
import { all, find } from "./dom.js";

export function closeMenus(target) {
  const open = all("details.pop[open]").filter((one) => !one.contains(target));
  open.forEach((one) => one.removeAttribute("open"));
  return open.length > 0;
}

const opened = (event) => event.target.matches?.("details.way[open]") && find(".ways", event.target).scrollIntoView({ block: "nearest" });
document.addEventListener("toggle", opened, true);

// What a number means is told while it is pointed at or has the focus, until Escape. A pointer that rests where a
// number comes to stand does not point at it.
function tellTip(tip) {
  closeTips(tip);
  tip.setAttribute("open", "");
}

export function closeTips(target) {
  const open = all(".tip[open]").filter((tip) => !tip.contains(target));
  open.forEach((tip) => tip.removeAttribute("open"));
  return open.length > 0;
}

const tipOf = (event) => event.target.closest?.(".tip > button")?.parentElement;

document.addEventListener("click", (event) => {
  closeMenus(event.target);
  closeTips(event.target);
  if (tipOf(event)) tellTip(tipOf(event));
});

document.addEventListener("focusin", (event) => {
  const tip = tipOf(event);
  if (!tip) return void closeTips(event.target);
  tellTip(tip);
  find(".why", tip).scrollIntoView({ block: "nearest" });
});

document.addEventListener("mousemove", (event) => {
  if (tipOf(event) && (event.movementX || event.movementY)) tellTip(tipOf(event));
});

document.addEventListener("mouseout", (event) => {
  const focused = document.activeElement?.closest(".tip");
  if (event.target.closest?.(".tip") !== focused) closeTips(event.relatedTarget ?? focused);
});
