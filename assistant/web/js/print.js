// On paper, each reply is followed by what its numbers stand for; on the page the sources are in their panel.
import { all } from "./dom.js";

addEventListener("beforeprint", () => all("#talk .reply").forEach(addSources));
addEventListener("afterprint", () => all(".printed").forEach((one) => one.remove()));

function addSources(reply) {
  const said = new Map(all(".chip", reply).map((chip) => [`${chip.textContent} ${chip.title}`, chip]));
  if (!said.size) return;
  const list = document.createElement("ol");
  list.className = "printed";
  for (const chip of [...said.values()].sort((a, b) => a.textContent - b.textContent)) {
    const item = document.createElement("li");
    item.value = chip.textContent;
    item.textContent = chip.title;
    list.append(item);
  }
  reply.after(list);
}
