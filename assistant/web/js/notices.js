// Banners: an error stays until it is closed, a note goes by itself.
import { onClick } from "./actions.js";
import { all, find } from "./dom.js";

onClick("close", (button) => button.closest(".notice").remove());

document.addEventListener("animationend", (event) => {
  if (event.animationName === "leave") event.target.remove();
});

// A banner of the page itself, in place of the one before.
export function tell(sentence) {
  all(".notice.refused").forEach((one) => one.remove());
  const close = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "×" });
  close.dataset.close = "";
  close.setAttribute("aria-label", "Close");
  const text = Object.assign(document.createElement("span"), { textContent: sentence });
  const notice = Object.assign(document.createElement("div"), { className: "notice refused" });
  notice.setAttribute("role", "alert");
  notice.append(text, close);
  (find("#notice") ?? document.body).prepend(notice);
}
