// Which conversation is shown: opened in the sidebar, by the address, or by a fact that names a message in it.
import { onPress } from "./actions.js";
import { awaitPlace, box } from "./composer.js";
import { find } from "./dom.js";
import { closeDrawers } from "./drawers.js";
import { here, send } from "./pieces.js";

let wantedTurn = ""; // the id of the turn to show once its conversation is there

onPress("open", (button) => {
  closeDrawers();
  if ((button.dataset.conversation ?? "") !== here().conversation) awaitPlace();
  wantedTurn = button.dataset.show ?? "";
  if (!wantedTurn) box()?.focus();
});

// The address of this page, with which what is exported leads to documents on the server.
onPress("export", (button) => (button.dataset.site = new URL(".", location).href));

export function showTurn() {
  const turn = wantedTurn && document.getElementById(`turn-${wantedTurn}`);
  if (!turn) return;
  wantedTurn = "";
  turn.scrollIntoView({ block: "start" });
  (find(".reply", turn) ?? box()).focus({ preventScroll: true });
}

let typing;
document.addEventListener("input", (event) => {
  if (event.target.id !== "search") return;
  clearTimeout(typing);
  typing = setTimeout(() => send(event.target, "search", {}), 200);
});

// The address ends in the conversation's id; until one is shown, it says which to show.
export function rememberAddress() {
  if (!find("#transcript [data-conversation]")) return;
  const id = find("#transcript [data-temporary]") ? "" : here().conversation; // which a reload ends
  const hash = id ? `#${id}` : "";
  if (location.hash !== hash) history.replaceState(null, "", hash || location.pathname);
}

function show(conversation) {
  const transcript = find("#transcript [data-live]");
  if (transcript) send(transcript, "open", { conversation });
}

// Another tab may have gone on with this conversation meanwhile. While none is shown yet, the one to show is on its way.
document.addEventListener("visibilitychange", () => {
  const answering = document.body.classList.contains("answering");
  const shown = find("#transcript [data-conversation]");
  if (document.visibilityState === "visible" && shown && !answering) show(here().conversation);
});

addEventListener("hashchange", () => {
  const id = location.hash.slice(1);
  if (id !== here().conversation) show(id);
});
