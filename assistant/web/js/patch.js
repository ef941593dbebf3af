// Puts fresh HTML into the page node by node, so that what is open, focused, selected or half typed stays so.

// Turns the children of `old` into those of `fresh`, keeping nodes: by id where they have one, else by place.
export function patch(old, fresh) {
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const kept = child.id ? keptById(child, old) : next && !next.id && alike(next, child) ? next : null;
    if (!kept) {
      old.insertBefore(child, next);
      continue;
    }
    if (kept === next) next = next.nextSibling;
    else old.insertBefore(kept, next);
    update(kept, child);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// A turn that has been answered moves, as it is, from the piece being written to the transcript.
function keptById(child, old) {
  const same = document.getElementById(child.id);
  return same && same.tagName === child.tagName && (same.parentNode === old || child.tagName === "ARTICLE") ? same : null;
}

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && !b.id;

// Groups of facts are people's to fold, what is asked for opens; and so is what opened for the same reason before.
const folds = (old, fresh) => old.matches(".group") || (fresh.dataset.opens && old.dataset.opens === fresh.dataset.opens);

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.isEqualNode(fresh)) return;
  const folded = folds(old, fresh);
  const cited = old.matches("#sources .current"); // only the browser knows which citation is shown
  for (const { name } of [...old.attributes]) if (!["open", "data-folded"].includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) === value) continue;
    if (name === "open" && folded) continue;
    old.setAttribute(name, value);
    if (name === "value" && old !== document.activeElement) old.value = value;
  }
  if (cited) old.classList.add("current");
  if (old.type === "checkbox") old.checked = fresh.hasAttribute("checked");
  // What is being written fills a place; the transcript around it only says where that is. What was found out once
  // (`data-kept`) stays until something newer is.
  if (old.tagName === "SELECT") patchPicked(old, fresh);
  else if (!fresh.matches(".place[data-place], textarea, [data-kept]")) patch(old, fresh);
}

// What was picked stays picked for as long as it can be.
function patchPicked(old, fresh) {
  const picked = old.value;
  patch(old, fresh);
  if ([...old.options].some((one) => one.value === picked)) old.value = picked;
}
