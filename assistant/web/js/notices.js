// Banners: an error stays until it is closed, a note goes by itself.
import { onClick } from "./actions.js";

onClick("close", (button) => button.closest(".notice").remove());

document.addEventListener("animationend", (event) => {
  if (event.animationName === "leave") event.target.remove();
});
