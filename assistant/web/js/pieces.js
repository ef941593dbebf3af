// Live pieces: HTML comes in and is patched into the page, events go out.
import { find, parsed } from "./dom.js";
import { focused, refocus } from "./focus.js";
import { patch } from "./patch.js";
import { nearEnd } from "./scroll.js";
import { alive } from "./server.js";

const triggers = new WeakMap(); // root element of a live piece -> its trigger function
const shows = {}; // id of a live piece -> what shows its value
const listeners = {}; // id of a live piece -> what is called once its value is shown

// `act` is called with the piece's element, and whether the talk was at its end, each time that its value was shown.
export const whenShown = (id, act) => (listeners[id] ??= []).push(act);

// Shows a piece's value once more, for instance when there is a place for it now.
export const showAgain = (id) => shows[id]?.();

// Called by Gradio for each piece, with what its components are given.
export function live(element, props, trigger, watch) {
  const { id } = element.closest(".block");
  triggers.set(element, trigger);
  element.dataset.live = "";
  shows[id] = () => show(element, id, props.value);
  watch("value", shows[id]);
  shows[id]();
}

function show(element, id, html) {
  const fresh = parsed(html || "");
  // A frame of an answer that belongs to another conversation came too late.
  const only = find("[data-only]", fresh)?.dataset.only;
  if (only && only !== here().conversation) return;
  const into = find("[data-into]", fresh);
  const place = into && document.getElementById(into.dataset.into);
  if (into && !place) return; // the transcript that has this place comes next
  const atEnd = nearEnd() && (!place || !place.nextElementSibling);
  const begins = place && !place.firstChild;
  const had = focused(element);
  if (place) patch(place, into);
  patch(element, place ? document.createElement("div") : fresh);
  if (begins) place.scrollIntoView({ block: "nearest" });
  listeners[id]?.forEach((act) => act(element, atEnd));
  refocus(element, had);
}

// What this tab shows; goes with every event.
export function here() {
  const shown = find("#transcript [data-conversation]")?.dataset.conversation ?? "";
  return {
    conversation: shown,
    shown,
    looked: find("#sources [data-looked]")?.dataset.looked ?? "",
    search: find("#search")?.value ?? "",
  };
}

// Sends an event of the piece that the element is in. Returns whether the server heard it.
export async function send(element, name, data) {
  const root = element.closest("[data-live]");
  if (!root || !(await alive())) return false;
  triggers.get(root)(name, { ...here(), ...data });
  return true;
}
