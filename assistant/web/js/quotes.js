// The sentence that a citation stands for, where a finger taps its number: there is nothing there that hovers. A button
// in it opens the source; a mouse and a keyboard open that at once.
import { find } from "./dom.js";

const box = document.createElement("div");
box.popover = "auto"; // what closes when something else is pressed, and with Escape
box.className = "quote";
box.role = "dialog";
box.dataset.live = ""; // it looks as the live pieces do
box.innerHTML = '<p dir="auto"></p><p class="dim" dir="auto"></p><button type="button" class="solid">Open the source</button>';
document.body.append(box);

let finger = false;
document.addEventListener("pointerdown", ({ pointerType }) => (finger = pointerType === "touch"), true);

// Whether a press came from a finger; those of a keyboard and of a screen reader have no count of clicks.
export const byFinger = (event) => finger && event.detail > 0;

// Shows what a citation quotes, beneath its number or above it; its button calls `open`.
export function showQuote(chip, open) {
  const [, quote, where] = /^([^]*?)(?:\n— ([^\n]*))?$/.exec(chip.title);
  const [said, stands] = box.children;
  said.textContent = quote;
  stands.textContent = where ?? "";
  box.ariaLabel = `Source ${chip.textContent}`;
  find("button", box).onclick = () => {
    box.hidePopover();
    open();
  };
  box.showPopover();
  const { top, bottom } = chip.getBoundingClientRect();
  const beneath = bottom + box.offsetHeight + 16 < innerHeight;
  box.style.top = `${beneath ? bottom + 8 : Math.max(top - box.offsetHeight - 8, 8)}px`;
}

document.addEventListener("scroll", () => box.matches(":popover-open") && box.hidePopover(), true);
