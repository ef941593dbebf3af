// The model that is offered: who closes the line is not asked about that model again in this browser.
import { onClick } from "./actions.js";
import { find } from "./dom.js";
import { whenShown } from "./pieces.js";

const KEPT = "sequitur-offer-closed";

function show() {
  const line = find("#offer [data-offered]");
  if (line) line.hidden = localStorage.getItem(KEPT) === line.dataset.offered;
}

whenShown("offer", show);

onClick("dismiss", ({ dataset: { dismiss } }) => {
  localStorage.setItem(KEPT, dismiss);
  show();
  find("#box").focus();
});
