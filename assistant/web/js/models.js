// The model panel: servers are asked when it is opened, and a form can be tested before it is sent.
import { onClick, onSubmit, submit } from "./actions.js";
import { find } from "./dom.js";
import { send, whenShown } from "./pieces.js";
import { whileUp } from "./server.js";

// However its tab was opened: by a click, by a key, or from elsewhere on the page.
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#model-tab-button")) send(find("#models .models"), "see", {});
});

const asked = {}; // id of a piece -> the mark that it showed, and the one that it was last asked to show

// Another tab, or another person, may have changed what answers, and a larger model may be offered by now.
whileUp(async () => {
  const mark = await fetch("model-mark", { cache: "no-store", signal: AbortSignal.timeout(4000) })
    .then((answer) => (answer.ok ? answer.text() : ""))
    .catch(() => ""); // the time may end while the answer is read, too
  for (const id of mark ? ["models", "offer"] : []) {
    const shown = find(`#${id} [data-mark]`);
    if (!shown?.checkVisibility({ checkVisibilityCSS: true }) || shown.dataset.mark === mark) continue;
    const change = `${shown.dataset.mark} ${mark}`; // asked for once: servers that are away take their time
    if (asked[id] !== change && (await send(shown, "see", {}))) asked[id] = change;
  }
});

onClick("test", async (button) => {
  const { form } = button;
  if (!form.reportValidity()) return;
  button.disabled = true;
  if (!(await send(form, "test", Object.fromEntries(new FormData(form))))) button.disabled = false;
});

onClick("pick", ({ dataset: { pick } }) => (find("#server-model").value = pick));

let adding = null; // the form that was sent; its fields stay until the server is kept

onSubmit("connect", async (form) => {
  if (await submit(form)) adding = form;
});

const tested = () => {
  const button = find("#models [data-test]");
  if (button) button.disabled = false;
};

whenShown("models", () => {
  if (adding) {
    adding.reset();
    find("#probed", adding).replaceChildren();
  }
  adding = null;
  tested();
});

whenShown("notice", (element) => {
  if (!find(".error", element)) return;
  adding = null;
  tested();
});
