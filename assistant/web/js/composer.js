// The box: what is typed, how it is sent, and what becomes of it when it can't be answered.
import { onClick, onSubmit } from "./actions.js";
import { find, parsed } from "./dom.js";
import { tell } from "./notices.js";
import { send, showAgain, whenShown } from "./pieces.js";
import { toEnd } from "./scroll.js";
import { whenDown } from "./server.js";

const DRAFT = "sequitur-draft";
const PLACE_MS = 10_000;
const SENT_CHARS = 1_000_000; // the server closes the connection on more than it reads, and nothing comes back
const TOO_LONG = "This message is too long to be read at once; shorten it, or add long text as a document.";
export const box = () => find("#box");

function typed(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  sessionStorage.setItem(DRAFT, area.value);
}

document.addEventListener("input", (event) => {
  if (event.target.id === "box") typed(event.target);
});

function put(text) {
  box().value = text;
  typed(box());
}

function fill(text) {
  put(text);
  box().focus();
}

let asking = false; // a message was written and nothing came of it yet
let asked = false; // it is on its way
let sending = ""; // its text
let placed; // is called once the page shows the conversation that was asked for last
let place;

// A message that is sent from now on belongs to a conversation that is not shown yet.
export function awaitPlace() {
  place = new Promise((resolve) => {
    placed = resolve;
    setTimeout(resolve, PLACE_MS); // it may be refused, or never come
  });
}
awaitPlace();

// Whether what is shown at the end is a message that the server has not heard of.
export const unsent = () => asking && !asked;

// Something came of it; where that is no answer, it does not stay as if there were to be one.
export function sentOver(piece) {
  if (!asked) return;
  if (asking && piece !== "answering" && find("#answering .sent")) showAgain("answering");
  asking = asked = false;
}

// The server refused it before any part of the page heard of it.
export function refused() {
  if (!asked) return;
  fill([sending, box().value].filter(Boolean).join("\n"));
  showAgain("answering");
  asking = asked = false;
}

whenDown(() => {
  placed();
  if (asking) showAgain("answering");
  asking = asked = false; // nothing may ever come of what was sent
});

const busy = () => asking || document.body.classList.contains("answering");

// Returns whether the message was sent.
async function ask(utterance) {
  if (busy()) return false;
  box().focus();
  if (!utterance.trim()) return false;
  if (utterance.length > SENT_CHARS) {
    tell(TOO_LONG);
    return false;
  }
  asking = true;
  sending = utterance;
  echo(utterance);
  await place;
  await new Promise((resolve) => setTimeout(resolve)); // all that came with the conversation is shown
  if (!find("#answering .sent")) echo(utterance);
  asking = asked = await send(box(), "ask", { utterance });
  if (!asking) showAgain("answering");
  return asking;
}

// A message is there from the moment that it is sent; what the server shows of it, or nothing, comes in its place.
function echo(utterance) {
  const piece = find("#answering [data-live]");
  if (!piece) return;
  const turn = parsed(
    `<div class="conversation"><article class="turn sent"><div class="said" dir="auto"></div><div class="about">
    <span class="sending"><span class="spinner" aria-hidden="true"></span>Sending</span></div></article></div>`,
  );
  find(".said", turn).textContent = utterance.trim();
  piece.replaceChildren(...turn.childNodes);
  toEnd();
}

onClick("ask", (example) => ask(example.dataset.ask));

// What is typed while the message is sent stays in the box.
onSubmit("ask", async () => {
  const sent = box().value;
  if (await ask(sent)) put(box().value.replace(sent, ""));
});

// Text that the server gives back: a message that could not be answered, or one that was taken back. It comes before
// what was written meanwhile.
whenShown("composer", (element) => {
  sentOver("composer");
  const draft = find("form", element)?.dataset.draft;
  if (draft) fill([draft, box().value].filter(Boolean).join("\n"));
  else if (!box().value) put(sessionStorage.getItem(DRAFT) ?? "");
});
whenShown("transcript", () => find("#transcript [data-conversation]") && placed());
whenShown("notice", (element) => {
  if (find(".notice", element)) placed();
  sentOver("notice");
});

// What was written and not sent is nobody's who logs in next.
document.addEventListener("submit", (event) => event.target.matches("[action='logout']") && forgetDraft());
export const forgetDraft = () => sessionStorage.removeItem(DRAFT);
