// What a press or a form does. HTML says it in data attributes: `data-event="x"` sends the event x with all of the
// element's values, and a form's fields; for the others, parts of the page say here what they do.
import { find } from "./dom.js";
import { focusLater } from "./focus.js";
import { send } from "./pieces.js";

const clicks = { event: act };
const presses = {};
const submits = {};

// A click on what has this data attribute calls `act` with it, and with the event.
export const onClick = (attribute, act) => (clicks[attribute] = act);

// A button with this `data-event` calls `act` before the event is sent.
export const onPress = (event, act) => (presses[event] = act);

// A form with this `data-event` calls `act` instead of `submit`.
export const onSubmit = (event, act) => (submits[event] = act);

// What a click is on, if it can do something.
export const pressable = (event) => event.target.closest?.("button, a, [data-event]");

document.addEventListener("click", (event) => {
  const target = pressable(event);
  if (target) Object.keys(target.dataset).forEach((attribute) => clicks[attribute]?.(target, event));
});

function act(button) {
  if (button.tagName !== "BUTTON") return;
  const { event, focus } = button.dataset;
  if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
  focusLater(focus);
  presses[event]?.(button);
  send(button, event, { ...button.dataset });
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-event]");
  if (!form) return;
  event.preventDefault();
  (submits[form.dataset.event] ?? submit)(form);
});

// Sends a form's event and closes the menu that it is in. Returns the fields, or null where the server didn't hear it.
export async function submit(form) {
  const fields = Object.fromEntries(new FormData(form));
  if (!(await send(form, form.dataset.event, { ...form.dataset, ...fields }))) return null;
  closeMenu(form.closest("details"));
  return fields;
}

// A focus that would be hidden goes to what opens the menu.
function closeMenu(menu) {
  if (menu?.contains(document.activeElement)) find("summary", menu).focus();
  menu?.removeAttribute("open");
}
