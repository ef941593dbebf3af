// Copies a reply as text, its citations as numbers in brackets; and what a button has to copy.
import { onClick } from "./actions.js";
import { all } from "./dom.js";

onClick("copy", (button) => copied(button, textOf(document.getElementById(button.dataset.copy))));
onClick("clip", (button) => copied(button, button.dataset.clip));

async function copied(button, text) {
  if (!(await toClipboard(text))) return;
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
}

function textOf(reply) {
  const clone = reply.cloneNode(true);
  all(".unseen", clone).forEach((one) => one.remove());
  all(".chip", clone).forEach((chip) => (chip.textContent = `[${chip.textContent}]`));
  document.body.append(clone); // innerText knows about line breaks only where there is a layout
  const text = clone.innerText.trim();
  clone.remove();
  return text;
}

// A page that is shared over plain http has no clipboard to write to; there, what is selected can be copied.
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const active = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  active?.focus({ preventScroll: true });
  return done;
}
