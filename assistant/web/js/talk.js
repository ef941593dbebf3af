// The conversation and the answer that is being written: what follows when they have changed.
import { box, sentOver, unsent } from "./composer.js";
import { rememberAddress, showTurn } from "./conversations.js";
import { all, find } from "./dom.js";
import { closeDrawers } from "./drawers.js";
import { takeWanted } from "./focus.js";
import { showAgain, whenShown } from "./pieces.js";
import { toEnd } from "./scroll.js";

whenShown("transcript", (element, atEnd) => {
  sentOver("transcript");
  rememberAddress();
  if (!unsent()) showAgain("answering"); // there may be another place for it
  focusWanted();
  showTurn();
  grown(atEnd);
});

whenShown("answering", (element, atEnd) => {
  sentOver("answering");
  grown(atEnd);
});

function focusWanted() {
  const target = takeWanted();
  if (!target) return;
  closeDrawers();
  target.focus();
}

function grown(atEnd) {
  running();
  if (atEnd && find("#talk article")) toEnd();
}

function running() {
  const was = document.body.classList.contains("answering");
  const is = Boolean(find(":is(#answering, [data-place]) .running"));
  document.body.classList.toggle("answering", is);
  const active = document.activeElement;
  if (was && !is && (active === document.body || active?.closest("#composer"))) box()?.focus();
  speak();
}

let written = ""; // the id of the reply that was being written, while it is shown

// What screen readers say: the step of the reply that is being written, then how it ended. An error says so itself.
// How far a step is would be said ten times a second.
function speak() {
  const step = all(":is(#answering, [data-place]) .running .steps > summary > .doing").at(-1);
  if (step) written = step.closest(".turn, .side").id;
  const reply = document.getElementById(written);
  if (!reply) written = "";
  const end = reply?.matches(".done") ? "Answered" : reply?.matches(".stopped") ? "Stopped" : "";
  const line = step?.textContent.trim() ?? end;
  const said = find("#spoken");
  if (said && said.textContent !== line) said.textContent = line;
}
