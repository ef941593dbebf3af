// Where the focus goes when what had it is gone or can't take it any more.
import { all, find } from "./dom.js";

// Where there is nothing like it left.
const HOME = {
  transcript: "#box",
  conversations: "#conversations .new",
  facts: "#new-fact",
  documents: "#panel [role=tab][aria-selected=true]",
  models: "#panel [role=tab][aria-selected=true]",
  tokens: "#token-label",
};

// What has the focus in this piece: which of the buttons of its kind, in its list or group.
export function focused(element) {
  const active = document.activeElement;
  if (!element.contains(active)) return null;
  const group = active.closest("ul, [role=group]") ?? element;
  const kind = `[data-event="${active.dataset.event}"]`;
  return { group, kind, place: all(kind, group).indexOf(active) };
}

// After a delete, the button of the next one has the focus, or of the last that is left.
export function refocus(element, had) {
  if (!had || document.activeElement !== document.body) return;
  const left = all(had.kind, had.group).filter((one) => one.checkVisibility());
  const next = left[had.place] ?? left.at(-1) ?? find(HOME[element.closest(".block").id] ?? "#box");
  next?.focus();
}

let wanted = ""; // the id of what takes the focus once the transcript has changed

export function focusLater(id) {
  wanted = id ?? "";
}

// What was to take the focus. After a step to the first or last version its button can't be pressed, and the other one
// takes it.
export function takeWanted() {
  const target = wanted && document.getElementById(wanted);
  if (!target) return null;
  wanted = "";
  return target.disabled ? find("button:enabled", target.parentElement) : target;
}
