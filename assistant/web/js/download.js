// A file that the server gives to keep: facts or a conversation.
import { find } from "./dom.js";
import { whenShown } from "./pieces.js";

whenShown("download", (element) => {
  const given = find("[data-download]", element);
  if (!given) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([given.textContent], { type: "text/plain;charset=utf-8" }));
  link.download = given.dataset.download;
  link.click();
  URL.revokeObjectURL(link.href);
});
