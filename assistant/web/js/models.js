// The model panel: servers are asked when it is opened, and a form can be tested before it is sent.
import { onClick, onSubmit, submit } from "./actions.js";
import { find } from "./dom.js";
import { followMark } from "./marks.js";
import { send, whenShown } from "./pieces.js";

// However its tab was opened: by a click, by a key, or from elsewhere on the page.
document.addEventListener("click", (event) => {
  const menu = event.target.closest?.("#model-tab-button") && find("#models .models");
  if (menu) send(menu, "see", {});
});

// Its tab may be open before there is anything in it.
function askServers() {
  const unasked = find("#models [data-unasked]");
  if (unasked?.checkVisibility({ checkVisibilityCSS: true })) send(unasked, "see", {});
}

// Another tab, or another person, may have changed what answers, and a larger model may be offered by now.
followMark("model-mark", "models", "offer");

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
  askServers();
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
