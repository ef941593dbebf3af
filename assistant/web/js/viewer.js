// A document of the user's, over everything else, scrolled to what is marked in it.
import { onClick } from "./actions.js";
import { find } from "./dom.js";
import { whenShown } from "./pieces.js";

onClick("closes", (button) => button.closest("dialog").close());

whenShown("viewer", (element) => {
  const viewer = find("dialog", element);
  if (!viewer) return;
  // What comes once a person has closed it opens it no more.
  if (viewer.dataset.state === "waiting" && !viewer.open) viewer.showModal();
  const mark = find("mark", viewer);
  if (mark) mark.scrollIntoView({ block: "center" });
  else find(".leaf", viewer).scrollTo(0, 0);
});
