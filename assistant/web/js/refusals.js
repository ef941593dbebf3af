// Files that the server refuses before any part of the page hears of them, or that don't get there, told in a banner:
// Gradio, which sends them, shows it for a moment at best.
import { all, find } from "./dom.js";

const NOT_SENT = "The files could not be sent; see that they are not too large and the server is there, and choose them again.";
const send = window.fetch;

window.fetch = async (...args) => {
  const upload = /gradio_api\/upload(\?|$)/.test(args[0]?.url ?? args[0]);
  try {
    const answer = await send(...args);
    if (upload && !answer.ok) tell((await answer.clone().text()) || NOT_SENT);
    return answer;
  } catch (error) {
    if (upload) tell(NOT_SENT);
    throw error;
  }
};

function tell(sentence) {
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
