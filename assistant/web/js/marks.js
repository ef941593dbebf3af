// Pieces that follow what changes without them. Each shows the mark of what it was drawn from; while one is looked at,
// the server is asked every few seconds for the mark of what there is now, and the piece to be drawn anew if that is
// another one.
import { find } from "./dom.js";
import { send } from "./pieces.js";
import { whileUp } from "./server.js";

const asked = {}; // id of a piece -> the mark that it showed, and the one that it was last asked to show

// `ids` are those of the pieces whose mark the server tells at `path`.
export function followMark(path, ...ids) {
  whileUp(async () => {
    const looked = ids.filter((id) => marked(id)?.checkVisibility({ checkVisibilityCSS: true }));
    const mark = looked.length ? await told(path) : "";
    for (const id of mark ? looked : []) await follow(id, mark);
  });
}

async function follow(id, mark) {
  const shown = marked(id);
  if (!shown || shown.dataset.mark === mark) return;
  const change = `${shown.dataset.mark} ${mark}`; // asked for once: what draws it may take its time
  if (asked[id] !== change && (await send(shown, "see", {}))) asked[id] = change;
}

const marked = (id) => find(`#${id} [data-mark]`);

const told = (path) =>
  fetch(path, { cache: "no-store", signal: AbortSignal.timeout(4000) })
    .then((answer) => (answer.ok ? answer.text() : ""))
    .catch(() => ""); // the time may end while the answer is read, too
