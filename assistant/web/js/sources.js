// The sources panel: a citation's number shows the sentence that it stands for.
import { onClick, onPress } from "./actions.js";
import { all, find } from "./dom.js";
import { openPanel } from "./drawers.js";
import { here, send, whenShown } from "./pieces.js";
import { byFinger, showQuote } from "./quotes.js";

let wanted = null; // the citation to show once its sources are there

onPress("look", () => openPanel("sources"));

onClick("cite", (chip, event) => (chip.title && byFinger(event) ? showQuote(chip, () => showSource(chip)) : showSource(chip)));

function showSource(chip) {
  wanted = { turn: chip.dataset.turn, place: chip.dataset.cite };
  openPanel("sources");
  if (here().looked !== wanted.turn) send(chip, "look", { turn: wanted.turn });
  else requestAnimationFrame(showWanted);
}

whenShown("sources", showWanted);

function showWanted() {
  if (!wanted || here().looked !== wanted.turn) return;
  const { place } = wanted;
  wanted = null;
  all("#sources .current").forEach((one) => one.classList.remove("current"));
  const marks = all("#sources mark").filter((mark) => mark.dataset.cites.split(" ").includes(place));
  if (!marks.length) return;
  marks.forEach((mark) => mark.classList.add("current"));
  const card = marks[0].closest(".card");
  card.classList.add("current");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  card.focus({ preventScroll: true });
  marks[0].scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  const opens = find("[data-event=show_original]", card);
  if (opens) send(card, "show_original", { ...opens.dataset, citation: place });
}
