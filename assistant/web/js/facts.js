// The facts panel: adding, switching, filtering, and the way from a reply to the fact that it rests on.
import { onClick, onSubmit, submit } from "./actions.js";
import { all, find } from "./dom.js";
import { openPanel } from "./drawers.js";
import { focusLater } from "./focus.js";
import { send, whenShown } from "./pieces.js";

let storing = null; // the fact that was sent; its field keeps it until it is stored

onSubmit("store", async (form) => {
  const fields = await submit(form);
  if (fields) storing = fields.text;
});

function factStored() {
  const field = find("#new-fact");
  if (storing !== null && field.value === storing) field.form.reset();
  storing = null;
}

// What could not be stored is not shown as if it were: a switch goes back to what the server told last.
const asStored = (box) => (box.checked = box.defaultChecked);

document.addEventListener("change", async ({ target: box }) => {
  if (!box.matches("#facts [data-event=switch]")) return;
  if (!(await send(box, "switch", { ...box.dataset, on: box.checked }))) asStored(box);
});

whenShown("notice", (element) => {
  if (!find(".error", element)) return;
  storing = null;
  focusLater("");
  all("#facts [type=checkbox]").forEach(asStored);
});

document.addEventListener("input", (event) => {
  if (event.target.id === "filter") filterFacts();
});

// Shows the facts that have what was typed, their groups unfolded meanwhile. The server is not asked.
function filterFacts() {
  const wanted = find("#filter")?.value.trim().toLocaleLowerCase() ?? "";
  const cards = all("#facts .fact");
  for (const card of cards) card.hidden = !find(".text > span", card).textContent.toLocaleLowerCase().includes(wanted);
  for (const group of all("#facts .group")) {
    group.hidden = !find(".fact:not([hidden])", group);
    if (wanted && !group.open) group.dataset.folded = "";
    if (wanted) group.open = true;
    else if (group.dataset.folded !== undefined) group.open = false;
    if (!wanted) delete group.dataset.folded;
  }
  const none = find("#filtered");
  if (none) none.hidden = !cards.length || cards.some((card) => !card.hidden);
}

let wantedFact = null; // the fact to show once the facts are there
let mending = null; // the fact that is being corrected, and the turn whose reply named it

// Shows a fact with its editor open.
onClick("fix", ({ dataset: { fix: fact, turn } }) => {
  wantedFact = fact;
  mending = { fact, turn };
  openPanel("facts");
  requestAnimationFrame(showFact);
});

// Once it is corrected, its reply can be written anew.
onSubmit("edit", async (form) => {
  if (!(await submit(form)) || mending?.fact !== form.dataset.fact) return;
  focusLater(`anew-${mending.turn}`);
  mending = null;
});

function showFact() {
  const card = wantedFact && document.getElementById(`fact-${wantedFact}`);
  if (!card || !find(".facts").checkVisibility()) return;
  wantedFact = null;
  if (card.hidden) find("#filter").value = "";
  filterFacts();
  card.closest(".group")?.setAttribute("open", "");
  find("details.pop", card).setAttribute("open", "");
  card.scrollIntoView({ block: "center" });
  find("form input", card).focus({ preventScroll: true });
}

whenShown("facts", () => {
  factStored();
  filterFacts();
  requestAnimationFrame(showFact); // a tab that was never open before is not laid out yet
});
