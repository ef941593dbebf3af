// Once an account is deleted the page begins anew: without its conversation, and at the log-in where there is one. Until
// then a typed password can be looked at, and in pauses of typing the server is asked how strong a new one is.
import { onClick } from "./actions.js";
import { forgetDraft } from "./composer.js";
import { all, find } from "./dom.js";
import { send, whenShown } from "./pieces.js";

whenShown("account", (element) => {
  if (!find("[data-gone]", element)) return;
  forgetDraft();
  location.replace(location.pathname);
});

onClick("reveal", (button) => {
  const fields = all("input", document.getElementById(button.dataset.reveal));
  const shown = button.getAttribute("aria-pressed") === "false";
  button.setAttribute("aria-pressed", shown);
  fields.forEach((field) => (field.type = shown ? "text" : "password"));
});

let typing;
document.addEventListener("input", ({ target }) => {
  if (target.id !== "new-password") return;
  clearTimeout(typing);
  typing = setTimeout(() => send(find("#strength [data-live]"), "rate", { new: target.value }), 300);
});
