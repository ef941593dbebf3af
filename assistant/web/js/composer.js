// The box: what is typed, how it is sent, and what becomes of it when it can't be answered.
import { onClick, onSubmit } from "./actions.js";
import { find, parsed } from "./dom.js";
import { send, showAgain, whenShown } from "./pieces.js";
import { toEnd } from "./scroll.js";
import { whenDown } from "./server.js";

const DRAFT = "sequitur-draft";
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
let placed; // is called once the page knows which conversation it shows
const place = new Promise((resolve) => (placed = resolve));

// Whether what is shown at the end is a message that the server has not heard of.
export const unsent = () => asking && !asked;

// Something came of it; where that is no answer, it does not stay as if there were to be one.
export function sentOver(piece) {
  if (!asked) return;
  if (asking && piece !== "answering" && find("#answering .sent")) showAgain("answering");
  asking = asked = false;
}

whenDown(() => {
  if (asking) showAgain("answering");
  asking = asked = false; // nothing may ever come of what was sent
});

const busy = () => asking || document.body.classList.contains("answering");

// Returns whether the message was sent.
async function ask(utterance) {
  if (busy()) return false;
  box().focus();
  if (!utterance.trim()) return false;
  asking = true;
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
whenShown("notice", () => sentOver("notice"));
