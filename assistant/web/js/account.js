// Once an account is deleted the page begins anew: without its conversation, and at the log-in where there is one.
import { find } from "./dom.js";
import { whenShown } from "./pieces.js";

whenShown("account", (element) => {
  if (find("[data-gone]", element)) location.replace(location.pathname);
});
